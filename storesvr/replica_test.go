package storesvr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

func TestRequestsThatWaitShareOneCommit(t *testing.T) {
	b := newVoter(t)
	release := b.shut()
	const waiting = 50
	answers := make(chan error, waiting+1)
	send := func(round uint64) {
		_, err := b.prepare(round, alice)
		answers <- err
	}
	go send(1)
	await(t, "the first commit", b.gate.entered)
	for i := range waiting {
		go send(uint64(i) + 2)
	}
	waitFor(t, "all others to queue", func() bool { return len(b.writer.queue) == waiting })
	before := b.gate.commits()
	release()
	for range waiting + 1 {
		if err := await(t, "an answer", answers); err != nil {
			t.Error(err)
		}
	}
	if got := b.gate.commits() - before; got != 1 {
		t.Errorf("%d requests took %d commits, want 1", waiting, got)
	}
}

func TestNothingIsAnsweredBeforeItsCommit(t *testing.T) {
	b := newVoter(t)
	release := b.shut()
	answered := make(chan quorum.Verdict, 2)
	go func() {
		v, _ := b.prepare(1, alice)
		answered <- v
	}()
	await(t, "the commit", b.gate.entered)
	if got := b.read().Promised; !got.IsZero() {
		t.Errorf("a read shows %v before the commit", got)
	}
	if len(answered) != 0 {
		t.Error("answered before the commit")
	}
	release()
	if got := await(t, "the answer", answered); got != quorum.VerdictOK {
		t.Errorf("got %v, want ok", got)
	}
	if got, want := b.read().Promised, (seq.Epoch{Round: 1, Session: alice}); got != want {
		t.Errorf("a read shows %v after the commit, want %v", got, want)
	}
}

func TestLeasesAndReadsWaitForNoCommit(t *testing.T) {
	b := newVoter(t)
	b.mustPrepare(1, alice, quorum.VerdictOK)
	await(t, "the commit", b.gate.entered)
	if _, err := b.Renew(t.Context(), b.renewal(alice)); err != nil { // makes the bound
		t.Fatal(err)
	}
	await(t, "the commit", b.gate.entered)
	b.shut()
	go b.prepare(2, alice)
	await(t, "the commit", b.gate.entered)

	done := make(chan error, 1)
	go func() {
		_, renew := b.Renew(t.Context(), b.renewal(alice))
		_, release := b.Release(t.Context(), quorum.ReleaseRequest{Ref: b.ref, Session: alice, Secret: sessiontest.SecretOf(alice)})
		_, read := b.Read(t.Context(), quorum.ReadRequest{Ref: b.ref, Registers: []seq.Register{section}})
		done <- errors.Join(renew, release, read)
	}()
	if err := await(t, "renew, release and read", done); err != nil {
		t.Error(err)
	}
}

func TestAfterAFailedCommitNothingIsAnswered(t *testing.T) {
	broken := errors.New("input/output error")
	rows := []struct {
		name   string
		fail   func(*heldDB)
		onDisk seq.Epoch
	}{
		{"failed, not applied", func(g *heldDB) { g.before = broken }, seq.Epoch{Round: 1, Session: alice}},
		{"failed, but applied", func(g *heldDB) { g.after = broken }, seq.Epoch{Round: 2, Session: bob}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			b := newVoter(t)
			b.mustPrepare(1, alice, quorum.VerdictOK)
			if _, err := b.Renew(t.Context(), b.renewal(alice)); err != nil {
				t.Fatal(err)
			}
			b.gate.mu.Lock()
			row.fail(b.gate)
			b.gate.mu.Unlock()
			if v, err := b.prepare(2, bob); !errors.Is(err, ErrCommit) {
				t.Errorf("the prepare: got %v, %v, want ErrCommit", v, err)
			}
			await(t, "the replica to fail", b.writer.failed)
			if _, err := b.prepare(3, bob); !errors.Is(err, ErrCommit) {
				t.Errorf("the next prepare: got %v, want ErrCommit", err)
			}
			if _, err := b.Renew(t.Context(), b.renewal(alice)); !errors.Is(err, seq.ErrNotVoting) {
				t.Errorf("a renewal: got %v, want ErrNotVoting", err)
			}
			if _, err := b.Read(t.Context(), quorum.ReadRequest{Ref: b.ref}); !errors.Is(err, seq.ErrNotVoting) {
				t.Errorf("a read: got %v, want ErrNotVoting", err)
			}
			b.reopen()
			if got := b.read().Promised; got != row.onDisk {
				t.Errorf("the next process finds %v, want %v", got, row.onDisk)
			}
			b.mustPrepare(0, alice, quorum.VerdictNack)
		})
	}
}

func TestABrokenInvariantStopsTheStore(t *testing.T) {
	b := newVoter(t)
	err := b.writer.submit(t.Context(), &write{apply: func(time.Duration, bool, *disk.Update) error { return acceptor.ErrInvariant }})
	if !errors.Is(err, ErrCommit) || !errors.Is(err, acceptor.ErrInvariant) {
		t.Errorf("got %v, want ErrCommit and ErrInvariant", err)
	}
	await(t, "the replica to fail", b.writer.failed)
}

func TestARestartKeepsEveryPromiseAndValue(t *testing.T) {
	b := newVoter(t)
	b.mustPrepare(5, bob, quorum.VerdictOK)
	if _, err := b.Step(t.Context(), quorum.StepRequest{Ref: b.ref, Session: bob, Secret: sessiontest.SecretOf(bob), Items: []quorum.StepItem{{Register: section, Round: 5, Max: 700}}}); err != nil {
		t.Fatal(err)
	}
	b.mustPrepare(6, bob, quorum.VerdictOK)
	b.reopen()
	b.mustPrepare(6, alice, quorum.VerdictNack)
	b.mustPrepare(5, bob, quorum.VerdictNack)
	got := b.read()
	want := quorum.Result{Verdict: quorum.VerdictOK, Promised: seq.Epoch{Round: 6, Session: bob}, Accepted: seq.Epoch{Round: 5, Session: bob}, Max: 700}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := b.describe(); got.BootCount != 2 || !got.Voting {
		t.Errorf("boot %d, voting %v", got.BootCount, got.Voting)
	}
}

func TestALongerLeaseIsGrantedOnlyOnceItsBoundIsOnDisk(t *testing.T) {
	b := newVoter(t)
	b.mustPrepare(1, alice, quorum.VerdictOK)
	await(t, "the commit", b.gate.entered)
	release := b.shut()
	req := b.renewal(alice)
	req.Attach, req.Attached = []quorum.LeaseItem{{Register: section, Round: 1}}, 1
	done := make(chan error, 1)
	go func() {
		_, err := b.Renew(t.Context(), req)
		done <- err
	}()
	await(t, "the commit of the bound", b.gate.entered)
	if got := b.read(); got.Holder != 0 {
		t.Errorf("granted before the bound is on disk: %+v", got)
	}
	release()
	if err := await(t, "the renewal", done); err != nil {
		t.Fatal(err)
	}
	if got := b.read(); got.Holder != alice {
		t.Errorf("not granted afterwards: %+v", got)
	}
	b.reopen()
	if got, want := b.describe().Grace, acceptor.GraceOf(time.Second); got != want {
		t.Errorf("the grace is %v, want %v", got, want)
	}
	b.mustPrepare(2, bob, quorum.VerdictGrace)
	b.clock.Advance(acceptor.GraceOf(time.Second))
	b.mustPrepare(2, bob, quorum.VerdictOK)
}

func TestAStoreThatStopsWithNothingLeasedStartsWithoutGrace(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(b *bench)
		want time.Duration
	}{
		{"leased", func(*bench) {}, acceptor.GraceOf(time.Second)},
		{"expired", func(b *bench) { b.clock.Advance(time.Second) }, 0},
		{"ended", func(b *bench) {
			if _, err := b.Release(t.Context(), quorum.ReleaseRequest{Ref: b.ref, Session: alice, Secret: sessiontest.SecretOf(alice), All: true}); err != nil {
				t.Fatal(err)
			}
		}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newVoter(t)
			b.mustPrepare(1, alice, quorum.VerdictOK)
			req := b.renewal(alice)
			req.Attach, req.Attached = []quorum.LeaseItem{{Register: section, Round: 1}}, 1
			if _, err := b.Renew(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			row.end(b)
			b.reopen()
			if got := b.describe().Grace; got != row.want {
				t.Errorf("the grace is %v, want %v", got, row.want)
			}
		})
	}
}

func TestAWorkerMarkFarBeyondTheStoresClockIsRefused(t *testing.T) {
	b := newVoter(t)
	now := time.UnixMilli(1_800_000_000_000)
	b.core.wall = func() time.Time { return now }
	worker := seq.WorkerRegister("default", 0, 1)
	if got, err := b.Prepare(t.Context(), quorum.PrepareRequest{Ref: b.ref, Session: alice, Secret: sessiontest.SecretOf(alice),
		Items: []quorum.PrepareItem{{Register: worker, Round: 1, Create: true}}}); err != nil || got.Results[0].Verdict != quorum.VerdictOK {
		t.Fatalf("got %+v, %v", got, err)
	}
	for _, row := range []struct {
		ahead time.Duration
		want  quorum.Verdict
	}{{0, quorum.VerdictOK}, {time.Hour, quorum.VerdictOK}, {time.Hour + time.Millisecond, quorum.VerdictRefused}} {
		got, err := b.Step(t.Context(), quorum.StepRequest{Ref: b.ref, Session: alice, Secret: sessiontest.SecretOf(alice),
			Items: []quorum.StepItem{{Register: worker, Round: 1, Max: uint64(now.Add(row.ahead).UnixMilli())}}})
		if err != nil || got.Results[0].Verdict != row.want {
			t.Errorf("%v ahead: got %+v, %v, want %v", row.ahead, got.Results, err, row.want)
		}
	}
}

func TestANearlyFullDiskRefusesWritesAndKeepsLeases(t *testing.T) {
	b := newVoter(t)
	b.mustPrepare(1, alice, quorum.VerdictOK)
	if _, err := b.Renew(t.Context(), b.renewal(alice)); err != nil {
		t.Fatal(err)
	}
	b.writer.nearFull.Store(1000)
	for name, free := range map[string]func() (uint64, error){
		"nearly full": func() (uint64, error) { return 999, nil },
		"not known":   func() (uint64, error) { return math.MaxUint64, errors.New("statfs") },
	} {
		b.gate.mu.Lock()
		b.gate.free = free
		b.gate.mu.Unlock()
		before := b.gate.commits()
		b.mustPrepare(2, alice, quorum.VerdictFull)
		reply, err := b.Step(t.Context(), quorum.StepRequest{Ref: b.ref, Session: alice, Secret: sessiontest.SecretOf(alice), Items: []quorum.StepItem{{Register: section, Round: 1, Max: 5}}})
		if err != nil || reply.Results[0].Verdict != quorum.VerdictFull {
			t.Errorf("%s: a step: %+v, %v", name, reply, err)
		}
		req := b.renewal(alice)
		req.Attach, req.Attached = []quorum.LeaseItem{{Register: section, Round: 1}}, 1
		if reply, err := b.Renew(t.Context(), req); err != nil || len(reply.Refused) != 0 {
			t.Errorf("%s: a renewal: %+v, %v", name, reply, err)
		}
		req.Lease = 2 * time.Second
		if _, err := b.Renew(t.Context(), req); !errors.Is(err, seq.ErrStoreFull) {
			t.Errorf("%s: a longer lease than ever: got %v, want ErrStoreFull", name, err)
		}
		if got := b.gate.commits() - before; got != 0 {
			t.Errorf("%s: %d commits", name, got)
		}
		if !b.describe().nearlyFull {
			t.Errorf("%s: describe does not tell", name)
		}
	}
	b.gate.mu.Lock()
	b.gate.free = func() (uint64, error) { return 1000, nil }
	b.gate.mu.Unlock()
	b.mustPrepare(2, alice, quorum.VerdictOK)
}

func TestACallerThatLeftIsNotWaitedFor(t *testing.T) {
	b := newVoter(t)
	b.shut()
	go b.prepare(1, alice)
	await(t, "the commit", b.gate.entered)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := b.Prepare(ctx, quorum.PrepareRequest{Ref: b.ref, Session: alice, Secret: sessiontest.SecretOf(alice), Items: []quorum.PrepareItem{{Register: section, Round: 2}}})
		done <- err
	}()
	cancel()
	if err := await(t, "the caller", done); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestACloseEndsThoseWhoWait(t *testing.T) {
	b := newVoter(t)
	release := b.shut()
	done := make(chan error, 1)
	go func() {
		_, err := b.prepare(1, alice)
		done <- err
	}()
	await(t, "the commit", b.gate.entered)
	closed := make(chan error, 1)
	go func() { closed <- b.close() }()
	if err := await(t, "the caller", done); !errors.Is(err, seq.ErrShuttingDown) {
		t.Errorf("got %v, want ErrShuttingDown", err)
	}
	release()
	if err := await(t, "the close", closed); err != nil {
		t.Error(err)
	}
	b.replica = nil
	b.reopen()
	if got, want := b.read().Promised, (seq.Epoch{Round: 1, Session: alice}); got != want {
		t.Errorf("the commit in flight left %v, want %v", got, want)
	}
}

func TestARequestThatSpeaksForAnotherSessionIsRefusedAndDoesNothing(t *testing.T) {
	b := newVoter(t)
	b.mustPrepare(1, alice, quorum.VerdictOK)
	req := b.renewal(alice)
	req.Attach, req.Attached = []quorum.LeaseItem{{Register: section, Round: 1}}, 1
	if _, err := b.Renew(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	own := seq.NewSecret("alloc-1")
	other := b.renewal(alice)
	other.Session, other.Secret, other.Name = own.Session(), own, "alloc-2"
	if _, err := b.Renew(t.Context(), other); !errors.Is(err, seq.ErrNotSession) {
		t.Errorf("a session of one node under the name of another: got %v, want ErrNotSession", err)
	}
	lie := seq.NewSecret("")
	_, prepare := b.Prepare(t.Context(), quorum.PrepareRequest{Ref: b.ref, Session: alice, Secret: lie, Items: []quorum.PrepareItem{{Register: section, Round: 2}}})
	_, step := b.Step(t.Context(), quorum.StepRequest{Ref: b.ref, Session: alice, Secret: lie, Items: []quorum.StepItem{{Register: section, Round: 1, Max: 1 << 50}}})
	req.Secret, req.Attach, req.Drop = lie, nil, []quorum.LeaseItem{{Register: section, Round: 1}}
	_, renew := b.Renew(t.Context(), req)
	_, release := b.Release(t.Context(), quorum.ReleaseRequest{Ref: b.ref, Session: alice, Secret: lie, All: true})
	_, fill := b.change.fill(t.Context(), fillRequest{ref: b.ref, session: alice, secret: lie})
	for what, err := range map[string]error{"prepare": prepare, "step": step, "renew": renew, "release": release, "fill": fill} {
		if !errors.Is(err, seq.ErrNotSession) {
			t.Errorf("%s: got %v, want ErrNotSession", what, err)
		}
		if err != nil && strings.Contains(err.Error(), fmt.Sprintf("%x", lie.Seed)) {
			t.Errorf("%s tells the secret: %v", what, err)
		}
	}
	if got := b.read(); got.Holder != alice || got.Max != 0 || got.Promised != (seq.Epoch{Round: 1, Session: alice}) {
		t.Errorf("the register is %+v, want as alice left it", got)
	}
}

// A session with a lease from before the restart may still serve under it. That nothing is leased
// now proves nothing about this session before the grace has ended.
func TestAStoreThatStopsInsideItsGraceStartsWithIt(t *testing.T) {
	b := newVoter(t)
	b.mustPrepare(1, alice, quorum.VerdictOK)
	req := b.renewal(alice)
	req.Attach, req.Attached = []quorum.LeaseItem{{Register: section, Round: 1}}, 1
	if _, err := b.Renew(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	for range 2 {
		b.clock.Advance(acceptor.GraceOf(time.Second) - time.Nanosecond)
		b.reopen()
		if got := b.describe().Grace; got != acceptor.GraceOf(time.Second) {
			t.Fatalf("stopped inside the grace: the next is %v, want %v", got, acceptor.GraceOf(time.Second))
		}
	}
	b.clock.Advance(acceptor.GraceOf(time.Second))
	b.reopen()
	if got := b.describe().Grace; got != 0 {
		t.Errorf("stopped after the grace: the next is %v, want none", got)
	}
}

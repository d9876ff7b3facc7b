package storesvr

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// slowDisk finishes a commit when it is told to.
type slowDisk struct {
	noExact
	finish chan error
	begun  int // commits that began
}

func (d *slowDisk) Commit(disk.Update) (uint64, error) {
	d.begun++
	return uint64(d.begun), <-d.finish
}

func (d *slowDisk) Free() (uint64, error) { return math.MaxUint64, nil }
func (d *slowDisk) Close() error          { return nil }

// newSlow is a voting replica on a slow disk, inside of a bubble.
func newSlow(t *testing.T) (*replica, *slowDisk, quorum.Ref) {
	t.Helper()
	d := &slowDisk{finish: make(chan error)}
	meta := disk.Meta{Identity: disk.Identity{Cluster: "c1", UUID: "u-a", Name: "a", N: 3, R: 2, W: 2, Names: []string{"a", "b", "c"}},
		Members: disk.Members{Version: 1, List: []quorum.Member{{UUID: "u-a", Name: "a"}, {UUID: "u-b", Name: "b"}, {UUID: "u-c", Name: "c"}}}}
	cfg := Config{MaxLease: 10 * time.Second, Logger: slog.New(slog.DiscardHandler), Clock: clock.NewManual(time.Hour)}
	r, err := newReplica(cfg, d, meta, map[seq.Register]acceptor.State{section: {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(d.finish) // the last commit, that nothing is leased, need not wait
		r.close()
	})
	id := r.describe()
	asked := make([]quorum.Claim, 0, len(id.Members))
	for _, m := range id.Members {
		asked = append(asked, quorum.Claim{Store: id.UUID, By: m.UUID})
	}
	if err := r.vouch(id.Ref.Cluster, id.Nonce, asked); err != nil {
		t.Fatal(err)
	}
	return r, d, id.Ref
}

// answered is what came by now; ok is false if nothing has. Inside of a bubble that is
// certain, and no matter of waiting long enough: everything that could run has run.
func answered(c <-chan error) (err error, ok bool) {
	synctest.Wait()
	select {
	case err := <-c:
		return err, true
	default:
		return nil, false
	}
}

func TestNoAnswerLeavesBeforeItsCommitHasEnded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r, d, ref := newSlow(t)
		for i, row := range []struct {
			name string
			send func() error
		}{
			{"prepare", func() error {
				_, err := r.Prepare(t.Context(), quorum.PrepareRequest{Ref: ref, Session: alice, Secret: sessiontest.SecretOf(alice),
					Items: []quorum.PrepareItem{{Register: section, Round: 1}}})
				return err
			}},
			{"step", func() error {
				_, err := r.Step(t.Context(), quorum.StepRequest{Ref: ref, Session: bob, Secret: sessiontest.SecretOf(bob),
					Items: []quorum.StepItem{{Register: section, Round: 2, Max: 10}}})
				return err
			}},
			{"the first lease", func() error {
				_, err := r.Renew(t.Context(), quorum.RenewRequest{Ref: ref, Session: alice, Secret: sessiontest.SecretOf(alice), Name: "a", Lease: time.Second})
				return err
			}},
		} {
			answer := make(chan error, 1)
			go func() { answer <- row.send() }()
			if err, ok := answered(answer); ok {
				t.Errorf("%s is answered during its commit: %v", row.name, err)
			}
			if d.begun != i+1 {
				t.Fatalf("%s: %d commits began, want %d", row.name, d.begun, i+1)
			}
			d.finish <- nil
			if err, ok := answered(answer); !ok || err != nil {
				t.Errorf("%s after its commit: answered %v, %v", row.name, ok, err)
			}
		}
	})
}

func TestACommitThatFailedMayHaveHappenedAndEndsTheStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r, d, ref := newSlow(t)
		prepare := func(round uint64) <-chan error {
			answer := make(chan error, 1)
			go func() {
				_, err := r.Prepare(t.Context(), quorum.PrepareRequest{Ref: ref, Session: alice, Secret: sessiontest.SecretOf(alice),
					Items: []quorum.PrepareItem{{Register: section, Round: round}}})
				answer <- err
			}()
			return answer
		}
		first := prepare(1)
		synctest.Wait()
		second := prepare(2) // waits for the next commit, which must never begin
		synctest.Wait()
		d.finish <- errors.New("input/output error")
		for name, answer := range map[string]<-chan error{"the one": first, "one behind it": second, "a later one": prepare(3)} {
			if err, ok := answered(answer); !ok || !errors.Is(err, ErrCommit) {
				t.Errorf("%s: answered %v, %v, want ErrCommit", name, ok, err)
			}
		}
		if d.begun != 1 {
			t.Errorf("%d commits began, want no other one", d.begun)
		}
		if _, err := r.Read(t.Context(), quorum.ReadRequest{Ref: ref, Registers: []seq.Register{section}}); !errors.Is(err, seq.ErrNotVoting) {
			t.Errorf("a read: got %v, want ErrNotVoting", err)
		}
		if _, err := r.Renew(t.Context(), quorum.RenewRequest{Ref: ref, Session: alice, Secret: sessiontest.SecretOf(alice), Name: "a", Lease: time.Second}); !errors.Is(err, seq.ErrNotVoting) {
			t.Errorf("a renewal: got %v, want ErrNotVoting", err)
		}
	})
}

// A broken connection says nothing about the process behind it: it may go on serving
// until its lease has ended.
func TestALeaseOutlivesTheConnectionThatItCameBy(t *testing.T) {
	b := newVoter(t)
	b.mustPrepare(1, alice, quorum.VerdictOK)
	req := b.renewal(alice)
	req.Attach, req.Attached = []quorum.LeaseItem{{Register: section, Round: 1}}, 1
	if _, err := b.Renew(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Renew(gone, req); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := b.Prepare(gone, quorum.PrepareRequest{Ref: b.ref, Session: alice, Secret: sessiontest.SecretOf(alice),
		Items: []quorum.PrepareItem{{Register: section, Round: 1}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a prepare on the broken connection: got %v", err)
	}
	b.mustPrepare(2, bob, quorum.VerdictHeld)
	if got := b.read(); got.Holder != alice {
		t.Errorf("the holder is %v, want %v", got.Holder, alice)
	}
	b.clock.Advance(time.Second)
	b.mustPrepare(2, bob, quorum.VerdictOK)
}

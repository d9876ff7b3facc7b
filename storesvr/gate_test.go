package storesvr

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// speaking is the context of a call by a build of that protocol.
func speaking(t *testing.T, protocol string) context.Context {
	return metadata.NewIncomingContext(t.Context(), metadata.Pairs(rpc.ProtocolHeader, protocol+"/1"))
}

func (b *bench) require(protocol int, check, decided bool) error {
	return b.replica.require(b.t.Context(), "c1", 0, protocol, check, decided)
}

// wantProtocol checks for seq.ErrProtocol with all the words.
func wantProtocol(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, seq.ErrProtocol) {
		t.Errorf("%s: got %v, want %v", what, err, seq.ErrProtocol)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %v does not say %q", what, err, w)
		}
	}
}

// asks makes each kind of call by which a session gets a lease or a promise.
func (b *bench) asks(ctx context.Context, who seq.Session, round uint64) map[string]error {
	got := map[string]error{}
	_, got["renew"] = b.Renew(ctx, b.renewal(who))
	_, got["prepare"] = b.Prepare(ctx, quorum.PrepareRequest{Ref: b.ref, Session: who, Secret: sessiontest.SecretOf(who), Items: []quorum.PrepareItem{{Register: section, Round: round}}})
	_, got["step"] = b.Step(ctx, quorum.StepRequest{Ref: b.ref, Session: who, Secret: sessiontest.SecretOf(who), Items: []quorum.StepItem{{Register: section, Round: round, Max: 1}}})
	return got
}

func TestASessionBelowTheRequiredProtocolGetsNoLeaseAndNoPromise(t *testing.T) {
	b := newVoter(t)
	old, own := speaking(t, "2"), speaking(t, "3")
	for call, err := range b.asks(old, alice, 1) {
		if err != nil {
			t.Errorf("%s before anything is required: %v", call, err)
		}
	}
	for _, check := range []bool{true, false} {
		wantProtocol(t, "an older session is live", b.require(3, check, false), alice.String(), "speaks 2", "3 is to be required")
	}
	if _, err := b.Renew(old, b.renewal(alice)); err != nil || b.describe().Required != 0 {
		t.Errorf("after a refused raise %d is required: %v", b.describe().Required, err)
	}
	b.clock.Advance(2 * time.Second)
	if err := b.require(3, true, false); err != nil || b.describe().Required != 0 {
		t.Errorf("a check: %v, %d is required", err, b.describe().Required)
	}
	if err := b.require(3, false, false); err != nil || b.describe().Required != 3 {
		t.Fatalf("require: %v, %d is required", err, b.describe().Required)
	}
	for range 2 {
		for call, err := range b.asks(old, alice, 2) {
			wantProtocol(t, call+" of an older session", err, "speaks 2", `cluster "c1" requires 3`)
		}
		if got := b.read().Promised.Round; got != 1 {
			t.Errorf("round %d was promised", got)
		}
		if out := b.describe().keptOut; len(out) != 2 || out[1].GetProtocol() != 2 || !strings.Contains(out[1].GetName(), alice.String()) {
			t.Errorf("the store tells of refused nodes %v", out)
		}
		for call, err := range b.asks(own, bob, 1) {
			if err != nil {
				t.Errorf("%s of a session that speaks it: %v", call, err)
			}
		}
		for call, err := range b.asks(t.Context(), bob, 1) {
			if err != nil {
				t.Errorf("%s of a session that does not say: %v", call, err)
			}
		}
		b.reopen()
		b.clock.Advance(time.Minute) // the grace
	}
}

// The lease that an older session got while the raise went to disk would outlast the raise.
func TestNoOlderSessionIsLetInWhileARaiseGoesToDisk(t *testing.T) {
	b := newVoter(t)
	if _, err := b.Renew(t.Context(), b.renewal(bob)); err != nil { // makes the bound
		t.Fatal(err)
	}
	for len(b.gate.entered) > 0 {
		<-b.gate.entered
	}
	release := b.shut()
	raised := make(chan error, 1)
	go func() { raised <- b.require(3, false, false) }()
	await(t, "the commit", b.gate.entered)
	_, err := b.Renew(speaking(t, "2"), b.renewal(alice))
	wantProtocol(t, "a renewal", err)
	if got := b.describe().Required; got != 0 {
		t.Errorf("%d counts as required before the commit", got)
	}
	release()
	if err := await(t, "the raise", raised); err != nil {
		t.Error(err)
	}
}

func TestTheRequiredProtocolNeverFallsAndIsNoneThatTheStoreDoesNotSpeak(t *testing.T) {
	b := newVoter(t)
	wantProtocol(t, "newer than the store", b.require(version.Protocol+1, false, true), "upgrade the store")
	if _, err := b.Renew(speaking(t, "2"), b.renewal(alice)); err != nil {
		t.Fatal(err)
	}
	if err := b.require(3, false, true); err != nil { // another store has it
		t.Error(err)
	}
	for range 2 {
		if err := b.require(2, false, true); err != nil || b.describe().Required != 3 {
			t.Errorf("%d is required after a lower one, %v", b.describe().Required, err)
		}
		b.reopen()
	}
	if err := b.replica.require(t.Context(), "c2", 0, 3, false, true); !errors.Is(err, seq.ErrForeignCluster) {
		t.Errorf("another cluster: %v", err)
	}
	if err := b.replica.require(t.Context(), "c1", 1, 3, false, true); !errors.Is(err, seq.ErrStaleEra) {
		t.Errorf("another era: %v", err)
	}
}

// After its start a store does not know which sessions still hold a lease of it.
func TestAStoreInItsGraceRequiresNothing(t *testing.T) {
	b := newVoter(t)
	b.mustPrepare(1, alice, quorum.VerdictOK)
	renewal := b.renewal(alice)
	renewal.Attach, renewal.Attached = []quorum.LeaseItem{{Register: section, Round: 1}}, 1
	if _, err := b.Renew(speaking(t, "2"), renewal); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	if err := b.require(3, false, false); !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("in the grace: %v", err)
	}
	b.clock.Advance(time.Minute)
	if err := b.require(3, false, false); err != nil {
		t.Error(err)
	}
}

func TestAStoreOfBeforeRequiresWhatItsClusterUses(t *testing.T) {
	for _, row := range []struct {
		name  string
		space seq.Space
		sets  uint64
		want  int
	}{
		{"plain", seq.Space{Name: "user", Sections: 4}, 0, 0},
		{"an exact space", seq.Space{Name: "user", Sections: 4, Mode: seq.Exact}, 0, version.ExactSpaces},
		{"Sets", seq.Space{Name: "user", Sections: 4}, 1, version.SetsBefore},
	} {
		t.Run(row.name, func(t *testing.T) {
			id, err := NewIdentity(InitConfig{DataDir: "d", ClusterID: "c1", Name: "a", MemberNames: []string{"a"}, Spaces: []seq.Space{row.space}})
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{t: t, dir: filepath.Join(t.TempDir(), "a"), clock: newBench(t).clock}
			record := map[seq.Register]acceptor.State{seq.RecordRegister: {Max: row.sets}}
			if err := disk.Create(b.dir, id, disk.Filling{Registers: record}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				b.restart()
				if got := b.describe().Required; got != row.want {
					t.Errorf("%d is required, want %d", got, row.want)
				}
			}
		})
	}
}

func TestALearnerBeginsWithTheRequiredProtocol(t *testing.T) {
	b := &bench{t: t, dir: filepath.Join(t.TempDir(), "d"), clock: newBench(t).clock}
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: 4})
	if err == nil {
		err = InitLearner(LearnerConfig{DataDir: b.dir, ClusterID: "c1", Name: "d", Mapping: mapping, Required: 3})
	}
	if err != nil {
		t.Fatal(err)
	}
	if b.restart(); b.describe().Required != 3 {
		t.Errorf("%d is required", b.describe().Required)
	}
}

// A node of a build of before raises nothing when it makes a Set, or adds an exact space.
func TestAStoreRequiresWhatANodeOfBeforeBeginsToUse(t *testing.T) {
	b := newVoter(t)
	_, err := b.Prepare(t.Context(), quorum.PrepareRequest{Ref: b.ref, Session: alice, Secret: sessiontest.SecretOf(alice), Items: []quorum.PrepareItem{{Register: seq.RecordRegister, Round: 1}}})
	if err != nil || b.describe().Required != 0 {
		t.Fatalf("%d is required, %v", b.describe().Required, err)
	}
	_, err = b.Step(speaking(t, "2"), quorum.StepRequest{Ref: b.ref, Session: alice, Secret: sessiontest.SecretOf(alice), Items: []quorum.StepItem{{Register: seq.RecordRegister, Round: 1, Max: 1, Payload: []byte("{}")}}})
	if err != nil || b.describe().Required != version.SetsBefore {
		t.Errorf("%d is required after the first Record, %v", b.describe().Required, err)
	}
	c := newVoter(t)
	for _, mode := range []seq.Mode{seq.Strict, seq.Exact} {
		want := 0
		m, added, err := c.describe().Mapping.Add(seq.Space{Name: "s" + string(mode), Sections: 4, Mode: mode})
		if err == nil && added {
			err = c.change.extend(t.Context(), "c1", 0, m)
		}
		if mode == seq.Exact {
			want = version.ExactSpaces
		}
		if got := c.describe().Required; err != nil || got != want {
			t.Errorf("%d is required after a space of mode %v, want %d: %v", got, mode, want, err)
		}
	}
	wantProtocol(t, "a session that knows no exact space", c.asks(speaking(t, "1"), alice, 1)["prepare"])
	if b.reopen(); b.describe().Required != version.SetsBefore {
		t.Errorf("%d is required after a restart", b.describe().Required)
	}
}

func TestTheSessionOfABuildOfBeforeIsNotPreempted(t *testing.T) {
	for protocol, want := range map[string]quorum.Verdict{"3": quorum.VerdictHeld, "4": quorum.VerdictOK} {
		b := newExact(t)
		ctx := speaking(t, protocol)
		take := func(who seq.Session, round uint64, preempt bool) quorum.Verdict {
			reply, err := b.Prepare(ctx, quorum.PrepareRequest{Ref: b.ref, Session: who, Secret: sessiontest.SecretOf(who), Preempt: preempt,
				Items: []quorum.PrepareItem{{Register: exactSection, Round: round}}})
			if err != nil {
				t.Fatal(err)
			}
			return reply.Results[0].Verdict
		}
		take(alice, 1, false)
		lease := b.renewal(alice)
		lease.Attach, lease.Attached = []quorum.LeaseItem{{Register: exactSection, Round: 1}}, 1
		if reply, err := b.Renew(ctx, lease); err != nil || len(reply.Refused) > 0 {
			t.Fatalf("%s: %+v, %v", protocol, reply, err)
		}
		if got := take(bob, 2, true); got != want {
			t.Errorf("an owner that speaks %s: got %s, want %s", protocol, got, want)
		}
	}
}

package etcdstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// end ends a session in order.
func (n *node) end(who seq.Session) {
	n.Helper()
	if _, err := n.Release(n.Context(), quorum.ReleaseRequest{Ref: n.ref(), Session: who, Secret: secretOf(who), All: true}); err != nil {
		n.Fatalf("end %s: %v", who, err)
	}
}

// has says whether etcd has the key.
func (n *node) has(key string) bool { return slices.Contains(n.kv.etcd.Keys(), rigPrefix+"/"+key) }

// sweeps says whether a transaction removes a mark.
func sweeps(t etcdstore.Txn) bool {
	return slices.ContainsFunc(t.Then, func(op etcdstore.Op) bool {
		return op.Kind == etcdstore.Nested && removes(*op.Txn) && strings.HasPrefix(op.Txn.Then[0].Key, rigPrefix+"/ended/")
	})
}

func TestWhatSessionsOfThePastLeftIsRemovedWithTheNextOne(t *testing.T) {
	a, b := rig(t)
	a.renew(alice, 0)
	a.renew(bob, 0)
	a.end(alice)
	if !a.has("ended/" + alice.String()) {
		t.Fatal("no mark of the ended session")
	}
	b.pass(2 * rigLease) // bob is taken for dead
	b.renew(carol, 0)
	for _, gone := range []string{"ended/" + alice.String(), "n/" + alice.String(), "n/" + bob.String(), "s/" + bob.String()} {
		if b.has(gone) {
			t.Errorf("%q is there after the next session was made", gone)
		}
	}
	if !b.has("n/"+carol.String()) || !b.has("s/"+carol.String()) {
		t.Errorf("keys of the one that lives are gone: %q", b.kv.etcd.Keys())
	}
	rev := b.kv.etcd.Revision()
	c := newNode(t, b.kv.etcd)
	c.renew(sessiontest.Session(4), 0)
	if got := b.kv.etcd.Revision(); got != rev+1 {
		t.Errorf("%d writes for a session with nothing to remove, want 1", got-rev)
	}
	if _, err := a.tryRenew(alice, alice.String(), 0); !errors.Is(err, seq.ErrSessionEnded) {
		t.Errorf("a renewal by the process that ended it: %v, want %v", err, seq.ErrSessionEnded)
	}
	if _, err := a.tryRenew(bob, bob.String(), 0); err != nil {
		t.Errorf("a renewal of the one that was silent: %v, want it made anew", err)
	}
}

func TestAMessageFromBeforeASweepMakesNoSession(t *testing.T) {
	a, b := rig(t)
	a.kv.hold = func(t etcdstore.Txn) bool { return puts(t, "s/") }
	if _, err := a.tryRenew(alice, "a", 0); err == nil {
		t.Fatal("the held renewal was answered")
	}
	late := a.kv.held
	a.kv.hold, a.kv.held = nil, nil
	a.end(alice)
	b.renew(bob, 0)
	if b.has("ended/" + alice.String()) {
		t.Fatal("the mark was not removed")
	}
	a.kv.held = late
	a.kv.late(t)
	if b.has("s/" + alice.String()) {
		t.Error("the ended session is back")
	}
}

func TestAMarkThatWasWrittenAgainIsNotRemovedByALateSweep(t *testing.T) {
	a, b := rig(t)
	a.renew(alice, 0)
	a.end(alice)
	b.kv.hold = sweeps
	b.renew(bob, 0) // it has seen the mark, and its removal is under way
	if len(b.kv.held) != 1 {
		t.Fatalf("%d removals were held, want 1", len(b.kv.held))
	}
	newNode(t, a.kv.etcd).renew(carol, 0) // removes it, too
	z := newNode(t, a.kv.etcd)            // goes on as alice, and knows of no end
	z.kv.hold = func(t etcdstore.Txn) bool { return puts(t, "s/") }
	if _, err := z.tryRenew(alice, "z", 0); err == nil {
		t.Fatal("the held renewal was answered")
	}
	newNode(t, a.kv.etcd).end(alice)
	b.kv.late(t)
	if !b.has("ended/" + alice.String()) {
		t.Error("the second mark was removed")
	}
	z.kv.late(t)
	if b.has("s/" + alice.String()) {
		t.Error("the ended session is back")
	}
}

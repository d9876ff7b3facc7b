package globalid

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func retire(t *testing.T, n *node, namespace string, undo bool) (*pb.SnowflakeNamespace, error) {
	t.Helper()
	return n.dial().RetireNamespace(long(t), &pb.SnowflakeRetireNamespaceRequest{Namespace: namespace, Undo: undo})
}

func TestARetiredNamespaceMakesNoIDOnceThatIsAnsweredAndGoesOnOnceItIsUndone(t *testing.T) {
	c := newCluster(t)
	nodes := []*node{c.start("a"), c.start("b"), c.start("c")}
	c.add(nodes[0], "s", "twitter")
	for _, n := range nodes {
		n.must("s", 10)
	}
	for range 5 {
		got, err := retire(t, nodes[0], "s", false)
		// A worker id that a node gave up a moment ago may be a client's, as far as its mark tells.
		if latest := c.wall.Load() + workers.DefaultWindow.Milliseconds(); err != nil || got.InEffectInMs != 0 || got.WindowsUntilUnixMs > latest {
			t.Fatalf("got %v, %v", got, err)
		}
		for _, n := range nodes {
			if ids, _, err := n.gen("s", 10); !errors.Is(err, seq.ErrRetired) {
				t.Fatalf("%s: got %v, %v, want %v", n.name, ids, err, seq.ErrRetired)
			}
		}
		idle := c.start("idle") // it knows, and nobody finds it at the stores
		if err := idle.svc.Load().Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := retire(t, nodes[1], "s", true); err != nil {
			t.Fatal(err)
		}
		idle.must("s", 1)
		idle.leave()
		for _, n := range nodes {
			n.must("s", 10)
		}
	}
}

func TestAChangedLayoutIsThatOfEachIDOnceItIsAnswered(t *testing.T) {
	c := newCluster(t)
	nodes := []*node{c.start("a"), c.start("b")}
	c.add(nodes[0], "s", "time:41,worker:5,sequence:12;epoch=1700000000000")
	for _, n := range nodes {
		n.must("s", 10)
	}
	_, err := nodes[0].dial().PutNamespace(long(t), &pb.SnowflakePutNamespaceRequest{Name: "s", Overflow: "borrow", Version: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if l := n.lease("s"); l != nil && l.Namespace.Version != 2 {
			t.Errorf("%s still has a worker id under version %d", n.name, l.Namespace.Version)
		}
	}
}

func TestAChangeOfANamespaceSaysUntilWhenWindowsOfClientsLast(t *testing.T) {
	c := newCluster(t)
	a, b := c.start("a"), c.start("b")
	c.add(a, "s", "twitter")
	a.must("s", 1)
	k := &client{c: c, name: "k", book: newLedger(t)}
	lent := k.must(b, "s")
	got, err := retire(t, a, "s", false)
	if err != nil || got.WindowsUntilUnixMs != int64(lent.ConfirmedUnixMs) {
		t.Errorf("got %v, %v, want windows up to %d", got, err, lent.ConfirmedUnixMs)
	}
	if _, err := k.ask(b, "s"); !errors.Is(err, seq.ErrRetired) {
		t.Errorf("another window: got %v, want %v", err, seq.ErrRetired)
	}
}

func TestAChangeIsNotAnsweredWhileANodeThatLivesDoesNotAnswer(t *testing.T) {
	c := newCluster(t)
	a, b := c.start("a"), c.start("b")
	c.add(a, "s", "twitter")
	b.must("s", 1)
	b.deaf.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := a.svc.Load().workers.Told(ctx, "s"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	mark := b.lease("s").Mark()
	b.kill()
	if e, err := a.svc.Load().workers.Told(long(t), "s"); err != nil || e.Lent != mark {
		t.Errorf("a node that is dead: got %+v, %v, want windows up to %v", e, err, mark.Time())
	}
	d := c.start("d")
	d.must("s", 1)
	d.slow.Store(int64(11 * time.Second))
	if got, err := retire(t, a, "s", false); err != nil || got.InEffectInMs != 11_000 {
		t.Errorf("a node of a build of before: got %v, %v", got, err)
	}
}

func TestAWindowThatRanOutIsNotExtendedUnderAnOlderDocument(t *testing.T) {
	c := newCluster(t)
	a, b := c.start("a"), c.start("b")
	c.add(a, "s", "twitter")
	b.must("s", 1)
	b.leases.mu.Lock() // cut off from everybody
	b.leases.dead = true
	b.leases.mu.Unlock()
	c.fail(failsNotApplied, 0, 1, 2)
	c.leap(time.Minute)
	if got, err := retire(t, a, "s", false); err != nil || got.WindowsUntilUnixMs != 0 {
		t.Fatalf("got %v, %v", got, err)
	}
	c.fail(works, 0, 1, 2)
	b.leases.mu.Lock() // and back
	b.leases.dead = false
	b.leases.mu.Unlock()
	if ids, _, err := b.gen("s", 1); !errors.Is(err, seq.ErrRetired) {
		t.Errorf("got %v, %v, want %v", ids, err, seq.ErrRetired)
	}
}

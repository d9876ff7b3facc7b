package globalid

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

func TestAFloodOfUnknownNamespacesIsNotOneForTheRoot(t *testing.T) {
	g := newGroup(t, 2)
	g.start(0, "root")
	b := g.start(1, "b")
	for _, down := range []bool{false, true} {
		g.down.Store(down)
		before := g.asked.Load()
		for range 300 {
			if _, _, err := b.gen("unheard-of", 1); err == nil {
				t.Fatal("it has IDs")
			}
		}
		if n := g.asked.Load() - before; n > 30 {
			t.Errorf("the root was asked %d times, down %v", n, down)
		}
	}
}

// lend asks a node for windows until it has none.
func (n *node) lend(t *testing.T, namespace string) (lent int) {
	t.Helper()
	if _, err := n.svc.Load().names.Find(t.Context(), namespaces.Ref{Name: namespace}); err != nil {
		t.Fatal(err)
	}
	for ; lent < 100; lent++ {
		if _, err := n.svc.Load().workers.Of(namespace).Delegate(t.Context(), workers.WindowRequest{Window: time.Minute}); err != nil {
			return lent
		}
	}
	t.Fatal("it has windows without end")
	return lent
}

// Whether the Set has worker ids, all of which are held, or none at all.
func TestAFloodOfWishesThatTheRootCannotFulfilIsNotOneForTheRoot(t *testing.T) {
	g := newGroup(t, 3)
	root := g.start(0, "root")
	g.sets[0].add(root, "orders", eight)
	root.must("orders", 1)
	b, c := g.start(1, "b"), g.start(2, "c", only(root.lease("orders").Worker)) // which the root does not give away
	b.lend(t, "orders")
	for _, n := range []*node{b, c} {
		before := g.asked.Load()
		for range 300 {
			if _, err := n.svc.Load().workers.Of("orders").Delegate(t.Context(), workers.WindowRequest{Window: time.Minute}); err == nil {
				t.Fatalf("%s has a window", n.name)
			}
		}
		if asked := g.asked.Load() - before; asked > 30 {
			t.Errorf("%s asked the root %d times", n.name, asked)
		}
	}
}

// In virtual time: the pause after an answer that did not help is over.
func TestASetThatWasRefusedAsksAgainLater(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGroup(t, 2)
		book := g.book()
		g.sets[0].add(g.start(0, "root"), "orders", eight)
		b := g.start(1, "b")
		g.down.Store(true)
		for range 3 {
			if _, _, err := b.gen("orders", 1); err == nil {
				t.Fatal("it has IDs")
			}
		}
		g.down.Store(false)
		time.Sleep(2 * time.Second)
		book.take(b, "orders", 20)
	})
}

func TestCallsAtTheSameMomentAskTheRootOnce(t *testing.T) {
	g := newGroup(t, 2)
	g.sets[0].add(g.start(0, "root"), "orders", eight)
	b := g.start(1, "b")
	if _, err := b.svc.Load().names.Find(t.Context(), namespaces.Ref{Name: "orders"}); err != nil {
		t.Fatal(err)
	}
	before := g.asked.Load()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, _, err := b.svc.Load().names.Record(t.Context(), "orders"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if asked := g.asked.Load() - before; asked > 2 { // one may be of Follow
		t.Errorf("the root was asked %d times", asked)
	}
}

// muteRoot is a root of which the machines take no packet.
type muteRoot struct{ rootOf }

func (muteRoot) Ask(ctx context.Context, _ namespaces.AllotmentRequest) ([]byte, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("%w: no AllocSvr of the root Set answers", seq.ErrNoRoute)
}

// In virtual time.
func TestASetHasWorkerIDsOfEachNamespaceBeforeACallerComes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGroup(t, 2)
		g.sets[0].pauses, g.sets[1].pauses = bubble.NewClock(), bubble.NewClock()
		book := g.book()
		root := g.start(0, "root")
		g.sets[0].add(root, "early", "twitter")
		g.down.Store(true)
		b := g.start(1, "b")
		time.Sleep(time.Second)
		g.down.Store(false) // the root comes up after the Set
		eventually(t, "b has worker ids", func() bool { return len(b.svc.Load().workers.Allotted("early")) > 0 })
		g.down.Store(true)
		book.take(b, "early", 20)
		g.down.Store(false)
		g.sets[0].add(root, "late", "leaf")
		c := g.start(1, "c") // hears of it at its start, and b within ten seconds
		time.Sleep(11 * time.Second)
		g.down.Store(true)
		for _, n := range []*node{b, c} {
			book.take(n, "late", 20)
		}
		asked := g.asked.Load()
		time.Sleep(time.Minute)
		if got := g.asked.Load() - asked; got > 15 {
			t.Errorf("the root was asked %d times in a minute by two nodes", got)
		}
	})
}

// In virtual time.
func TestASetTellsWhatItKnowsWhileTheRootDoesNotAnswer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGroup(t, 2)
		g.start(0, "root")
		b := g.sets[1].start("b", func(c *Config) { c.Root = muteRoot{rootOf{g, 1}} })
		for _, patience := range []time.Duration{time.Second, regionsPatience, time.Minute} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			began := time.Now()
			if _, err := (server{s: b.svc.Load()}).Namespaces(ctx, &pb.SnowflakeNamespacesRequest{}); err != nil || time.Since(began) > time.Second {
				t.Errorf("with %v to go: after %v: %v", patience, time.Since(began), err)
			}
			cancel()
		}
	})
}

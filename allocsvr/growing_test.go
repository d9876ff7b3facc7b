package allocsvr

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// gated is a store whose reads wait until the gate opens.
type gated struct {
	quorum.Store
	asked func()
	gate  chan struct{}
}

func (g gated) Read(ctx context.Context, req quorum.ReadRequest) (quorum.Reply, error) {
	g.asked()
	<-g.gate
	return g.Store.Read(ctx, req)
}

// A node that waits for stores before it goes over to an added space still answers for the spaces
// that it has: the lock is for what it changes itself.
func TestANodeThatAsksStoresOfAnAddedSpaceHoldsUpNothing(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 4})
	a := f.start("a", 1, "")
	m, _, err := f.stores.Mapping.Add(seq.Space{Name: "room", Sections: 2})
	if err != nil {
		t.Fatal(err)
	}
	waits, gate := make(chan struct{}, 3), make(chan struct{})
	stores := f.stores.Named()
	for i := range stores {
		stores[i].Store = gated{stores[i].Store, sync.OnceFunc(func() { waits <- struct{}{} }), gate}
	}
	group, err := quorum.NewGroup(quorum.Config{Ref: f.stores.Ref, N: 3, R: 2, W: 2}, stores)
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{alloc: a.Alloc, group: group, cfg: Config{Name: "a", Logger: slog.New(slog.DiscardHandler)}}
	n.keys.Store(&documents.KeyEntries{})
	extended := make(chan error)
	go func() { extended <- n.Extend(t.Context(), m) }()
	for range 2 { // a quorum of them
		<-waits
	}
	if !n.growing.TryLock() {
		t.Error("the lock is held while stores are asked")
	} else {
		n.growing.Unlock()
	}
	if err := n.Extend(t.Context(), f.stores.Mapping); err != nil {
		t.Errorf("the mapping at hand: %v", err)
	}
	close(gate)
	if err := <-extended; err != nil {
		t.Fatal(err)
	}
	if _, there := (*n.keys.Load())["room"]; !there || len(a.Mapping().Spaces) != 2 {
		t.Errorf("the node has %d spaces, keys %v", len(a.Mapping().Spaces), *n.keys.Load())
	}
}

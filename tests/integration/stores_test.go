package integration

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
	"github.com/seqsvr/seqsvr/tests/kit/textlog"
	"github.com/seqsvr/seqsvr/tests/robust/proxy"
)

// storeStates are the states of the stores that an AllocSvr shows.
func (c *cluster) storeStates(i int) string {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	status, err := c.allocs[i].admin.Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, st := range status.GetStores() {
		all = append(all, st.GetState())
	}
	return strings.Join(all, "; ")
}

func TestStoresThatExchangeTheirAddressesServeAgainByThemselves(t *testing.T) {
	c := start(t)
	callers, err := client.New(t.Context(), client.Config{Addrs: c.addrs(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer callers.Close()
	next := func() seq.Seq {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		n, err := callers.Next(ctx, client.Key{UID: 7})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	last := next()
	for _, a := range c.allocs {
		a.links[0].Target(a.stores[1])
		a.links[1].Target(a.stores[0])
		a.links[0].Break()
		a.links[1].Break()
	}
	for i := range c.allocs {
		c.until("all stores vote", func() bool { return c.storeStates(i) == "voting; voting; voting" })
	}
	// Beyond what is left of a step, so that the stores have to take another.
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		first, end, err := callers.NextN(ctx, client.Key{UID: 7}, 1000)
		cancel()
		if err != nil || first <= last {
			t.Fatalf("got %d to %d, %v after %d", first, end, err, last)
		}
		last = end
	}
}

func TestAnAllocSvrStartsThoughAStoreOfAnotherClusterAnswersAtOneAddress(t *testing.T) {
	spaces := seq.Space{Name: seq.DefaultSpace, Sections: sections, Step: 500}
	stores, foreign := harness.Stores(t, 3, spaces), harness.Stores(t, 3, spaces)
	text := &textlog.Log{}
	log := slog.New(slog.NewTextHandler(text, nil))
	c := &cluster{t: t, all: sections}
	c.addAlloc("alloc-1", stores, log)
	c.until("the stores vote", func() bool { return c.storeStates(0) == "voting; voting; voting" })
	c.addAlloc("alloc-2", []string{stores[0], foreign[1], stores[2]}, log)
	c.until("both serve", func() bool { return c.served(1) > 0 && c.served(0)+c.served(1) == c.all })
	if !strings.Contains(text.String(), "left out") {
		t.Errorf("the log does not name the odd store: %s", text)
	}
	c.until("the state is shown", func() bool { return strings.Contains(c.storeStates(1), quorum.StateLeftOut) })
}

// A far store answers 400 ms after it is asked. The other two are W, and it catches up once it is near again.
func TestAFarStoreSlowsNoTakeAndCatchesUp(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster on disks")
	}
	const far, takes = 200 * time.Millisecond, 150
	stores := harness.Stores(t, 3, seq.Space{Name: seq.DefaultSpace, Sections: 1}, seq.Space{Name: "orders", Sections: 1, Mode: seq.Exact})
	c := &cluster{t: t, all: 2}
	c.addAlloc("alloc-1", stores, slog.New(slog.DiscardHandler))
	c.addAlloc("alloc-2", stores, slog.New(slog.DiscardHandler))
	c.until("every section is served", func() bool { return c.served(0)+c.served(1) == c.all })
	callers, err := client.New(t.Context(), client.Config{Addrs: c.addrs(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer callers.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	take := func(want seq.Seq) {
		if n, err := callers.Next(ctx, client.Key{Space: "orders", UID: 7}); err != nil || n != want {
			t.Fatalf("got %d, %v, want %d", n, err, want)
		}
	}
	take(1) // the stream of each store is open
	for _, a := range c.allocs {
		a.links[2].Set(proxy.Mode{Delay: far})
	}
	began := time.Now()
	for n := range seq.Seq(takes) {
		take(n + 2)
	}
	if took := time.Since(began); took > takes*far { // with the far store it would be twice that
		t.Errorf("%d takes one after the other took %v: they wait for the far store", takes, took)
	}
	for _, a := range c.allocs {
		a.links[2].Set(proxy.Mode{})
	}
	take(takes + 2)
	last := func(addr string) (index uint64) {
		store, err := storeclient.Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		if _, err := store.Dump(ctx, quorum.Ref{}, func(states []quorum.RegisterState) error {
			for _, s := range states {
				if s.Register == seq.SectionRegister(1) {
					index = s.PayloadMax
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return index
	}
	c.until("the far store has what the others have", func() bool {
		near := last(stores[0])
		return near > takes && last(stores[2]) == near
	})
}

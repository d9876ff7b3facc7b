package client_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// await begins orders and waits until all are done.
func await(t *testing.T, ctx context.Context, c *client.Client, orders ...*stream.Order) {
	t.Helper()
	var wg sync.WaitGroup
	for _, o := range orders {
		wg.Add(1)
		o.Done = wg.Done
	}
	c.Caller().Begin(ctx, orders...)
	wg.Wait()
}

func TestOrdersAreAnsweredAsBatchesAre(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 30}, seq.Space{Name: "room", Sections: 7})
	c := dial(t, cluster, client.Config{})
	ctx := bounded(t)
	if _, err := c.Raise(ctx, client.Key{UID: 64}, seq.MaxSeq, client.Forced); err != nil {
		t.Fatal(err)
	}
	many := make([]seq.UID, 2000) // above what goes by a stream
	for i := range many {
		many[i] = seq.UID(1000 + i%100)
	}
	orders := []*stream.Order{
		{UIDs: []seq.UID{0, 64, 0, 128, 0}, Counts: []uint32{1, 1, 10, 3, 2}},
		{UIDs: []seq.UID{7}},
		{Space: "room", UIDs: []seq.UID{0, 1, 0}},
		{Space: "none", UIDs: []seq.UID{1}},
		{UIDs: []seq.UID{1}, Counts: []uint32{0}},
		{UIDs: []seq.UID{1}, Counts: []uint32{1, 1}},
		{UIDs: many},
		{},
	}
	for round := range seq.Seq(2) { // an Order may be used again
		await(t, ctx, c, orders...)
		base := 13 * round
		want := [][]client.Range{
			{{First: base + 1, Last: base + 1}, {}, {First: base + 2, Last: base + 11}, {First: 3*round + 1, Last: 3*round + 3}, {First: base + 12, Last: base + 13}},
			{{First: round + 1, Last: round + 1}},
			{{First: 2*round + 1, Last: 2*round + 1}, {First: round + 1, Last: round + 1}, {First: 2*round + 2, Last: 2*round + 2}},
		}
		if err := orders[0].Ranges[1].Err; !errors.Is(err, seq.ErrOverflow) {
			t.Errorf("at the end of a sequence: got %v, want %v", err, seq.ErrOverflow)
		}
		orders[0].Ranges[1].Err = nil
		for k, ranges := range want {
			for i, r := range ranges {
				if got := orders[k].Ranges[i]; got != r {
					t.Errorf("round %d, order %d, index %d: got %+v, want %+v", round, k, i, got, r)
				}
			}
		}
		for k, want := range map[int]error{3: seq.ErrUnknownSpace, 4: seq.ErrBadCount, 5: seq.ErrBadBatch} {
			if err := orders[k].Ranges[0].Err; !errors.Is(err, want) {
				t.Errorf("order %d: got %v, want %v", k, err, want)
			}
		}
		for i, r := range orders[6].Ranges {
			if r.Err != nil || r.First != 20*round+seq.Seq(i/100)+1 {
				t.Fatalf("round %d, large order, index %d: got %+v", round, i, r)
			}
		}
	}
}

func TestOrdersStayUniqueThroughFailovers(t *testing.T) {
	ctx, b := bounded(t), newBook(t)
	throughTakeovers(t, func(what string, c *client.Client, uids []seq.UID) {
		t.Helper()
		orders := make([]*stream.Order, 4)
		for i := range orders {
			orders[i] = &stream.Order{UIDs: uids}
		}
		await(t, ctx, c, orders...)
		for _, o := range orders {
			for i, r := range o.Ranges {
				if r.Err != nil {
					t.Errorf("%s: index %d: %v", what, i, r.Err)
					continue
				}
				b.add(client.Key{UID: uids[i]}, r.First, r.Last)
			}
		}
	})
}

func TestOrdersAreDoneAfterClose(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	c := dial(t, cluster, client.Config{})
	_ = c.Close()
	o := &stream.Order{UIDs: []seq.UID{1, 2}}
	await(t, bounded(t), c, o)
	for _, r := range o.Ranges {
		if !errors.Is(r.Err, client.ErrClosed) {
			t.Errorf("got %+v, want %v", r, client.ErrClosed)
		}
	}
}

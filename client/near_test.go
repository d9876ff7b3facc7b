package client_test

import (
	"sync"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// evens has numbers of even UIDs from a million on, in any space but "room".
type evens struct {
	t     *testing.T
	given map[seq.UID]uint64
	asked [][]seq.UID
}

func (e *evens) TakeLocal(space string, uids []seq.UID, counts []uint32, first []uint64) bool {
	if len(uids) > seq.MaxBatch || len(first) != len(uids) || len(counts) != 0 && len(counts) != len(uids) {
		e.t.Errorf("asked for %d uids with %d counts, room for %d", len(uids), len(counts), len(first))
	}
	e.asked = append(e.asked, append([]seq.UID(nil), uids...))
	for i, uid := range uids {
		if first[i] != 0 {
			e.t.Errorf("first[%d] comes as %d", i, first[i])
		}
		if space == "room" || uid%2 != 0 {
			continue
		}
		n := uint64(1)
		if len(counts) > 0 {
			n = uint64(counts[i])
		}
		first[i] = 1e6 + e.given[uid]
		e.given[uid] += n
	}
	return false
}

func TestWhatIsNearIsTakenThereAndTheRestByTheNetwork(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 30}, seq.Space{Name: "room", Sections: 7})
	c := dial(t, cluster, client.Config{})
	near := &evens{t: t, given: map[seq.UID]uint64{}}
	const large, larges = 1000, 12 // together above what is asked at a time
	many := make([]seq.UID, large)
	for i := range many {
		many[i] = 1000 + seq.UID(i)
	}
	orders := []*stream.Order{
		{UIDs: []seq.UID{2}},
		{UIDs: []seq.UID{1, 2, 1, 3, 2}, Counts: []uint32{1, 10, 2, 1, 1}},
		{UIDs: []seq.UID{2}},
		{Space: "room", UIDs: []seq.UID{2, 2}},
		{Space: "none", UIDs: []seq.UID{2}},
	}
	for range larges {
		orders = append(orders, &stream.Order{UIDs: many})
	}
	var wg sync.WaitGroup
	for _, o := range orders {
		wg.Add(1)
		o.Done = wg.Done
	}
	c.Caller().BeginLocal(bounded(t), near, orders...)
	wg.Wait()
	one := func(n seq.Seq) client.Range { return client.Range{First: n, Last: n} }
	const m = 1_000_000
	for k, want := range [][]client.Range{
		{one(m)},
		{one(1), {First: m + 1, Last: m + 10}, {First: 2, Last: 3}, one(1), one(m + 11)},
		{one(m + 12)},
		{one(1), one(2)},
	} {
		for i, r := range want {
			if got := orders[k].Ranges[i]; got != r {
				t.Errorf("order %d, index %d: got %+v, want %+v", k, i, got, r)
			}
		}
	}
	if r := orders[4].Ranges[0]; r.Err == nil {
		t.Errorf("of a space that is not there: got %+v", r)
	}
	for k, o := range orders[5:] {
		for i, r := range o.Ranges {
			if want := one([2]seq.Seq{m, 1}[many[i]%2] + seq.Seq(k)); many[i]%2 == 0 && r != want || r.Err != nil || r.First >= m != (many[i]%2 == 0) {
				t.Fatalf("large order %d, index %d: got %+v, want %+v or another of the network", k, i, r, want)
			}
		}
	}
	if len(near.asked) != 4 || len(near.asked[0]) != 7 || len(near.asked[2]) != seq.MaxBatch {
		t.Errorf("asked %d times, the first for %d keys: want the orders of a space together", len(near.asked), len(near.asked[0]))
	}
}

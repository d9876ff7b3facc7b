package client_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// Orders and the buffers in which their keys are sorted and sent are used again. Every answer must match
// the counters, whatever the orders asked before.
func TestOrdersThatAreUsedAgainAreAnsweredAsNewOnes(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 30}, seq.Space{Name: "room", Sections: 7})
	c := dial(t, cluster, client.Config{AttemptTimeout: time.Minute}) // a second attempt would take others
	near, ctx := &evens{t: t, given: map[seq.UID]uint64{}}, bounded(t)
	draw, orders := rand.New(rand.NewPCG(9, 1)), make([]*stream.Order, 6)
	for i := range orders {
		orders[i] = &stream.Order{}
	}
	last, taken := map[string]uint64{}, map[seq.UID]uint64{} // what the network and near have given
	for round := range 100 {
		var wg sync.WaitGroup
		nearby := draw.IntN(2) == 0
		some := orders[:1+draw.IntN(len(orders))]
		for k, o := range some {
			o.Space, o.UIDs, o.Counts = []string{"", "", "", "user", "user", "user", "user", "room", "room", "room", "room", "none"}[draw.IntN(12)], nil, nil
			counts := draw.IntN(3) == 0
			for range 1 + draw.IntN(1+draw.IntN(60)) {
				if o.UIDs = append(o.UIDs, seq.UID(k*1000+draw.IntN(20))); counts {
					o.Counts = append(o.Counts, 1+draw.Uint32N(9))
				}
			}
			wg.Add(1)
			o.Done = wg.Done
		}
		if nearby {
			c.Caller().BeginLocal(ctx, near, some...)
		} else {
			c.Caller().Begin(ctx, some...)
		}
		wg.Wait()
		for k, o := range some {
			for i, uid := range o.UIDs {
				n := uint64(1)
				if len(o.Counts) > 0 {
					n = uint64(o.Counts[i])
				}
				got, key := o.Ranges[i], fmt.Sprint(o.Space == "room", uid)
				var want client.Range
				switch {
				case o.Space == "none":
					if !errors.Is(got.Err, seq.ErrUnknownSpace) {
						t.Fatalf("round %d, order %d, index %d: got %+v, want %v", round, k, i, got, seq.ErrUnknownSpace)
					}
					continue
				case nearby && o.Space != "room" && uid%2 == 0:
					want.First = seq.Seq(1e6 + taken[uid])
					taken[uid] += n
				default:
					want.First = seq.Seq(last[key] + 1)
					last[key] += n
				}
				if want.Last = want.First + seq.Seq(n) - 1; got != want {
					t.Fatalf("round %d, order %d, index %d: got %+v, want %+v", round, k, i, got, want)
				}
			}
		}
	}
}

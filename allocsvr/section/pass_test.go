package section

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership/ownershiptest"
	"github.com/seqsvr/seqsvr/seq"
)

// Batches that meet in few sections, with UIDs that stand in them several times, known
// and new ones: every stride is cut short somewhere.
func TestBatchesThatMeetGiveEachNumberOnceAndRisingWithinABatch(t *testing.T) {
	for _, sections := range []uint32{1, 3, 40} {
		t.Run(fmt.Sprintf("sections=%d", sections), func(t *testing.T) {
			n := ownedOfAll(t, sections)
			var mu sync.Mutex // guards given
			given := map[seq.UID]map[uint64]bool{}
			var wg sync.WaitGroup
			for who := range uint64(4) {
				wg.Go(func() {
					draw := rand.New(rand.NewPCG(who, 1))
					for range 60 {
						uids := make([]seq.UID, 1+draw.IntN(150))
						for i := range uids {
							uids[i] = seq.UID(draw.Uint64N(12))*64 + seq.UID(draw.Uint64N(40))
						}
						got := n.Take(t.Context(), &n.Mapping().Spaces[0], seq.PlainAll(uids...), nil)
						if len(got.Faults) > 0 {
							t.Error(got.Faults)
							return
						}
						last := map[seq.UID]uint64{}
						mu.Lock()
						for i, uid := range uids {
							if given[uid] == nil {
								given[uid] = map[uint64]bool{}
							}
							if given[uid][got.First[i]] || got.First[i] <= last[uid] {
								t.Errorf("uid %d: %d after %d, twice %t", uid, got.First[i], last[uid], given[uid][got.First[i]])
							}
							given[uid][got.First[i]], last[uid] = true, got.First[i]
						}
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			for uid, numbers := range given {
				for v := range uint64(len(numbers)) {
					if !numbers[v+1] {
						t.Errorf("uid %d: %d was skipped, %d were taken", uid, v+1, len(numbers))
						break
					}
				}
			}
		})
	}
}

func TestAHoldIsAskedAgainWhenItsAnswerIsUsedUpOrALeaseWasLost(t *testing.T) {
	hold := &ownershiptest.Lease{End: 10 * time.Second}
	c := newCell(0, &seq.Space{Sections: 1, Step: 1})
	c.hold = hold
	for i, row := range []struct {
		now    time.Duration
		losses uint64
		until  time.Duration // what the hold would say
		want   bool
	}{
		{1 * time.Second, 5, 10 * time.Second, true},
		{2 * time.Second, 5, 0, true}, // nothing was lost, so this cannot be: not asked
		{2 * time.Second, 6, 0, false},
		{3 * time.Second, 6, 20 * time.Second, true},
		{20 * time.Second, 6, 20 * time.Second, false},
		{20 * time.Second, 6, 30 * time.Second, true},
	} {
		hold.End = row.until
		if got := c.vouched(row.now, row.losses); got != row.want {
			t.Errorf("step %d: vouched at %v after %d losses: %t, want %t", i, row.now, row.losses, got, row.want)
		}
	}
	c.hold = nil
	if c.until = 0; c.vouched(time.Second, 6) {
		t.Error("vouched without a hold")
	}
}

package allocsvr

import (
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// A store is away while sections are taken, and comes back; later another store goes. At most one is
// away at any time, so nothing is skipped: the first one has heard of the sections by then, though
// none of them needed a step.
func TestSectionsThatWereTakenWithoutAStoreOutliveAnother(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 4, Step: 10_000})
		away, next := f.stores.Stores[2], f.stores.Stores[0]
		away.SetDown(true)
		n := f.start("a", 1, "")
		f.serving(n)
		for uid := range seq.UID(8) {
			if got := f.next(uid * 64); got != 1 {
				t.Errorf("uid %d: got %d, want 1", uid*64, got)
			}
		}
		away.SetDown(false)
		time.Sleep(2 * f.lease)
		next.SetDown(true)
		time.Sleep(4 * f.lease)
		for uid := range seq.UID(8) {
			if got := f.next(uid * 64); got != 2 {
				t.Errorf("uid %d, with another store away: got %d, want 2", uid*64, got)
			}
		}
	})
}

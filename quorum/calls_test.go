package quorum

import (
	"context"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// A copy that could not be read beside others in time is read alone: a large one needs more.
func TestACopyThatIsReadAloneHasMoreTime(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		other := seq.SectionRegister(8)
		g, fakes := cluster(t, 3, true, section, other)
		defer g.Close()
		slow := fault{sleep: func(ctx context.Context) {
			select {
			case <-ctx.Done():
			case <-time.After(2 * DefaultTimeout):
			}
		}}
		for _, f := range fakes {
			f.set(section, Result{Promised: epoch(1, me)})
			f.set(other, Result{Promised: epoch(1, me)})
			f.always(slow)
		}
		begun := time.Now()
		if out := g.Copies(t.Context(), me, []seq.Register{section, other}, []uint64{1, 1}); out[0].State != Unknown || time.Since(begun) != DefaultTimeout {
			t.Errorf("two copies: %v after %v, want none after %v", out[0].State, time.Since(begun), DefaultTimeout)
		}
		if out := g.Copies(t.Context(), me, []seq.Register{section}, []uint64{1}); out[0].State != Won {
			t.Errorf("one copy: %v, %v, want it", out[0].State, out[0].Err)
		}
	})
}

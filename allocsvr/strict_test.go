package allocsvr

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// The stores may let this session in and have promised another epoch all the same: the
// lease of the other has ended by their clocks.
func TestStrictAnswersUnderNoOtherEpochThanItsOwn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 1, Step: 10, Mode: seq.Strict})
		a := f.start("a", 1, "")
		for _, row := range []struct {
			name   string
			change func(*quorum.Outcome)
			want   error // nil if it serves
		}{
			{"its own", func(*quorum.Outcome) {}, nil},
			{"a higher round", func(o *quorum.Outcome) { o.Promised.Round++ }, seq.ErrNoLease},
			{"a higher session", func(o *quorum.Outcome) { o.Promised.Session++ }, seq.ErrNoLease},
			{"a lower round", func(o *quorum.Outcome) { o.Promised.Round-- }, seq.ErrNoLease},
			{"its own at too few stores", func(o *quorum.Outcome) { o.State, o.Err = quorum.Unknown, seq.ErrNoQuorum }, seq.ErrNoQuorum},
		} {
			f.serving(a) // again, if the section was given up
			own := a.Views()[0].Epoch
			a.probes.change = func(out []quorum.Outcome) {
				a.probes.change = nil
				for i := range out {
					if out[i].State != quorum.Won || out[i].Promised != own {
						t.Fatalf("%s: the stores show %+v, want %v", row.name, out[i], own)
					}
					row.change(&out[i])
				}
			}
			got := a.Take(t.Context(), &f.stores.Mapping.Spaces[0], seq.PlainAll(1), nil)
			if served := len(got.Faults) == 0; served != (row.want == nil) || (got.First[0] > 0) != served {
				t.Errorf("%s: got %d, faults %v, want %v", row.name, got.First[0], got.Faults, row.want)
			}
			for _, fault := range got.Faults {
				if !errors.Is(fault.Err, row.want) {
					t.Errorf("%s: got %v, want %v", row.name, fault.Err, row.want)
				}
			}
		}
	})
}

// W stores are enough: one that is 200 ms away adds nothing to an answer. It follows, so that it can stand in for
// one of the others.
func TestAStoreThatIsFarSlowsNoAnswerAndFollows(t *testing.T) {
	const far, most = 200 * time.Millisecond, 5 * time.Millisecond
	for _, space := range []seq.Space{exactSpace(2), {Name: "user", Sections: 2, Step: 10_000, Mode: seq.Strict}} {
		t.Run(string(space.Mode), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFleetOn(t, bubble.NewClock(), space)
				f.serving(f.start("a", 1, ""))
				last := uint64(0)
				take := func(i int) time.Duration {
					begun := time.Now()
					got := uint64(0)
					if space.Mode == seq.Exact {
						got, _ = f.once(7, fmt.Sprint(i))
					} else {
						got = uint64(f.next(7))
					}
					if got <= last || space.Mode == seq.Exact && got != last+1 {
						t.Errorf("got %d after %d", got, last)
					}
					last = got
					return time.Since(begun)
				}
				slow := 0
				for i := range 300 {
					if i == 100 {
						f.stores.Stores[0].SetFar(far)
					}
					if took := take(i); took > most {
						slow++
					}
				}
				if slow > 1 { // one of the others may have missed a batch while it was not needed
					t.Errorf("%d takes were slower than %v, want at most one", slow, most)
				}
				f.stores.Stores[1].SetDown(true)
				for i := range 10 {
					if took := take(300 + i); took > 3*far {
						t.Errorf("take %d, for which the store that is far is needed: %v", i, took)
					}
				}
			})
		})
	}
}

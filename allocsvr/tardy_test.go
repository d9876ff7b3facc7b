package allocsvr

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// slowRegisters are registers of which the next steps take effect and are answered too late.
type slowRegisters struct {
	ownership.Registers
	steps *atomic.Int64
	late  time.Duration
}

func (u slowRegisters) Step(ctx context.Context, id seq.Session, items []quorum.StepItem) []quorum.Outcome {
	out := u.Registers.Step(ctx, id, items)
	if u.steps.Add(-1) < 0 {
		return out
	}
	time.Sleep(u.late)
	for i := range out {
		out[i] = quorum.Outcome{State: quorum.Unknown, Err: quorum.ErrUnknownOutcome}
	}
	return out
}

func TestASuccessorThatIsLateWithItsFirstStepLeavesNoGap(t *testing.T) {
	tests := []struct {
		steps int64
		late  time.Duration
	}{{1, 100 * time.Millisecond}, {1, 400 * time.Millisecond}, {1, 4 * time.Second}, {3, 400 * time.Millisecond}}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%d steps, %v", test.steps, test.late), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 8, Step: 50})
				a, b := f.start("a", 2, ""), f.start("b", 2, "")
				f.serving(a, b)
				time.Sleep(f.lease)
				want := map[seq.UID]seq.Seq{}
				for uid := seq.UID(0); uid < 2000; uid += 64 {
					want[uid] = f.next(uid) + 1
				}
				steps := new(atomic.Int64)
				steps.Store(test.steps)
				b.through(slowRegisters{b.group, steps, test.late})
				if _, err := b.admin().Drain(t.Context(), drainRequest("a")); err != nil {
					t.Fatal(err)
				}
				f.until("a has nothing left", func() bool { return len(a.Owned()) == 0 && len(b.Owned()) == 8 })
				for uid, w := range want {
					if got := f.next(uid); got != w {
						t.Errorf("uid %d: got %d, want %d", uid, got, w)
					}
				}
				if steps.Load() >= 0 {
					t.Error("no step was late")
				}
			})
		})
	}
}

// slow are registers of which the next steps of sections are answered late.
type slow struct {
	ownership.Registers
	steps *atomic.Int64
	late  time.Duration
}

func (s slow) Step(ctx context.Context, id seq.Session, items []quorum.StepItem) []quorum.Outcome {
	out := s.Registers.Step(ctx, id, items)
	if _, section := items[0].Register.Section(); section && s.steps.Add(-1) >= 0 {
		time.Sleep(s.late)
	}
	return out
}

func TestANodeThatLeavesWhileItAcquiresParksWhatItAcquired(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 8, Step: 50})
		file := filepath.Join(t.TempDir(), "parked")
		a := f.start("a", 1, file)
		f.serving(a)
		want := map[seq.UID]seq.Seq{}
		for uid := seq.UID(0); uid < 2000; uid += 64 {
			want[uid] = f.next(uid) + 1
		}
		f.leave(a)

		steps := new(atomic.Int64)
		steps.Store(1)
		f.before = func(n *node) { n.through(slow{n.group, steps, 300 * time.Millisecond}) }
		a = f.start("a", 1, file)
		f.until("a step is at the stores", func() bool { return steps.Load() < 1 })
		f.leave(a)

		f.serving(f.start("a", 1, file))
		for uid, w := range want {
			if got := f.next(uid); got != w {
				t.Errorf("uid %d: got %d, want %d", uid, got, w)
			}
		}
	})
}

package allocsvr

import (
	"context"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/arbiter/placement"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// slowly does something else before a node's registers are released, or its session ended.
type slowly struct {
	ownership.Registers
	onRelease, onEnd func()
}

func (s slowly) Release(ctx context.Context, id seq.Session, items []quorum.LeaseItem, to seq.Session) error {
	if to != 0 {
		s.onRelease()
	}
	return s.Registers.Release(ctx, id, items, to)
}

func (s slowly) EndSession(ctx context.Context, id seq.Secret) error {
	s.onEnd()
	return s.Registers.EndSession(ctx, id)
}

// placed counts the sections that the newest table gives to the node, as owner and as standby.
func (f *fleet) placed(by *node, name string) (owner, standby int) {
	f.t.Helper()
	t, err := by.routes.Load(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, p := range t.Sections {
		for k, i := range p.Candidates() {
			switch {
			case i == seq.NoNode || t.Nodes[i].Name != name:
			case k == 0:
				owner++
			default:
				standby++
			}
		}
	}
	return owner, standby
}

// upForLong lets virtual time pass until the nodes have been up for long enough to be given
// sections for balance.
func upForLong() { time.Sleep(placement.DefaultDwell + time.Second) }

func TestANodeThatLeavesIsGivenNothingBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 48, Step: 100})
		a, b, c := f.start("a", 3, ""), f.start("b", 3, ""), f.start("c", 3, "")
		f.serving(a, b, c)
		upForLong()
		ended := false
		a.through(slowly{a.group, func() {}, func() {
			time.Sleep(5 * arbiter.Tick) // the others plan meanwhile
			if owner, standby := f.placed(b, "a"); owner > 0 || standby > 0 {
				t.Errorf("the table gives %d sections to the node that has left, and it stands by for %d", owner, standby)
			}
			ended = true
		}})
		f.leave(a)
		if !ended {
			t.Error("the session was not ended")
		}
		f.serving(b, c)
	})
}

func TestANodeThatBeginsToLeaveIsNoTargetOfARebalance(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 48, Step: 100})
		a, b, c := f.start("a", 3, ""), f.start("b", 3, ""), f.start("c", 3, "")
		f.serving(a, b, c)
		upForLong()
		asked := false
		a.through(slowly{a.group, func() {
			if asked {
				return
			}
			asked = true
			if _, err := b.admin().Rebalance(context.Background(), nil); err != nil {
				t.Error(err)
			}
			if owner, standby := f.placed(b, "a"); owner > 0 || standby > 0 {
				t.Errorf("the table gives %d sections to the node that leaves, and it stands by for %d", owner, standby)
			}
		}, func() {}})
		f.leave(a)
		if !asked {
			t.Error("nothing was handed over")
		}
		f.serving(b, c)
	})
}

func TestANodeThatIsBackIsGivenSectionsLikeANewOne(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 48, Step: 100})
		a, b, c := f.start("a", 3, ""), f.start("b", 3, ""), f.start("c", 3, "")
		f.serving(a, b, c)
		upForLong()
		f.leave(a)
		began := time.Now()
		a = f.start("a", 3, "")
		for time.Since(began) < placement.DefaultDwell {
			if owner, _ := f.placed(b, "a"); owner > 0 {
				t.Fatalf("given %d sections %v after it came back, want none before %v", owner, time.Since(began), placement.DefaultDwell)
			}
			time.Sleep(arbiter.Tick)
		}
		upForLong()
		if owner, _ := f.placed(b, "a"); owner == 0 {
			t.Error("given nothing since it came back")
		}
		f.serving(a, b, c)
	})
}

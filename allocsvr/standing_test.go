package allocsvr

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// statusOf returns the status that the node reports to an operator.
func (f *fleet) statusOf(n *node) *pb.StatusReply {
	f.t.Helper()
	r, err := n.admin().Status(context.Background(), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// between does something after a node has released sections and before its successor takes them.
type between struct {
	ownership.Registers
	do func()
}

func (b between) Release(ctx context.Context, id seq.Session, items []quorum.LeaseItem, to seq.Session) error {
	err := b.Registers.Release(ctx, id, items, to)
	if to != 0 {
		b.do()
	}
	return err
}

func TestSectionsBetweenTwoOwnersAreNotWithoutOne(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 32, Step: 100})
		a, b := f.start("a", 2, ""), f.start("b", 2, "")
		f.serving(a, b)
		time.Sleep(f.lease) // they know each other's sessions
		had := len(a.Owned())
		looked := make(chan struct{}, 1)
		a.through(between{a.group, func() {
			time.Sleep(time.Millisecond) // the last store releases as well
			for _, n := range []*node{a, b} {
				r := f.statusOf(n)
				if r.SectionsUnowned != 0 || int(r.SectionsMoving) != had {
					t.Errorf("%s says %d without an owner and %d moving, want 0 and %d", n.name, r.SectionsUnowned, r.SectionsMoving, had)
				}
				if !r.Ready {
					t.Errorf("%s is not ready: %s", n.name, r.Reason)
				}
			}
			looked <- struct{}{}
		}})
		if _, err := b.admin().Drain(t.Context(), drainRequest("a")); err != nil {
			t.Fatal(err)
		}
		<-looked
		f.serving(b)
		if r := f.statusOf(b); r.SectionsUnowned != 0 || r.SectionsMoving != 0 {
			t.Errorf("afterwards %d are without an owner and %d moving, want none", r.SectionsUnowned, r.SectionsMoving)
		}
	})
}

// unpromising are registers of which no store promises any.
type unpromising struct{ ownership.Registers }

func (unpromising) Prepare(_ context.Context, _ seq.Session, items []quorum.PrepareItem) []quorum.Outcome {
	return slices.Repeat([]quorum.Outcome{{State: quorum.Refused, Err: quorum.ErrHeld}}, len(items))
}

func TestSectionsOfADeadNodeHaveNoOwnerUntilTheyAreTakenOver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 32, Step: 100})
		a, b := f.start("a", 2, ""), f.start("b", 2, "")
		f.serving(a, b)
		had := len(a.Owned())
		b.through(unpromising{b.group}) // it takes nothing over
		a.kill()
		time.Sleep(2 * f.lease)
		if r := f.statusOf(b); int(r.SectionsUnowned) != had || r.SectionsMoving != 0 {
			t.Errorf("%d without an owner and %d moving, want %d and 0", r.SectionsUnowned, r.SectionsMoving, had)
		}
	})
}

func TestANodeIsNotReadyBeforeItHasTakenWhatNobodyElseHas(t *testing.T) {
	o := newOwner(t)
	o.routes.Adopt(&seq.RouteTable{Version: 1, Nodes: []seq.Node{{Name: "a", Addr: "a", Session: ownerSession}},
		Sections: []seq.Placement{{Owner: 0, Standby: seq.NoNode, Standby2: seq.NoNode}}})
	if err := o.Ready(); err != nil {
		t.Errorf("with the section: %v", err)
	}
	o.clock.Advance(ownerLease)
	if err := o.Ready(); !errors.Is(err, seq.ErrNoLease) {
		t.Errorf("with the lease ended: got %v, want ErrNoLease", err)
	}
	o.c.Drop(o.epoch, "")
	if err := o.Ready(); !errors.Is(err, errTaking) {
		t.Errorf("nobody has it: got %v, want errTaking", err)
	}
	for _, begun := range []bool{false, true} {
		o.c.Begin()
		if !begun {
			o.c.Abandon("b") // still has it, and will hand it over
		}
		if err := o.Ready(); err != nil {
			t.Errorf("another has it, looking %v: %v", begun, err)
		}
	}
}

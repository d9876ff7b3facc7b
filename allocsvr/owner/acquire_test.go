package owner

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/allocsvr/ownership/ownershiptest"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// willing are stores that let the session have whatever it asks for. They say that
// accepted was accepted last, and of the next steps what the test says.
type willing struct {
	*ownershiptest.Registers
	promised, accepted seq.Epoch
	max                uint64
	steps              []quorum.State // of the next ones; won afterwards
	asked              []quorum.StepItem
}

func (w *willing) Probe(_ context.Context, _ seq.Session, regs []seq.Register) []quorum.Outcome {
	return slices.Repeat([]quorum.Outcome{{State: quorum.Won, Promised: w.promised}}, len(regs))
}

func (w *willing) Prepare(_ context.Context, id seq.Session, items []quorum.PrepareItem) []quorum.Outcome {
	w.promised = seq.Epoch{Round: items[0].Round, Session: id}
	return slices.Repeat([]quorum.Outcome{{State: quorum.Won, Promised: w.promised, Accepted: w.accepted, Max: w.max}}, len(items))
}

func (w *willing) Step(_ context.Context, id seq.Session, items []quorum.StepItem) []quorum.Outcome {
	w.asked = append(w.asked, items...)
	state := quorum.Won
	if len(w.steps) > 0 {
		state, w.steps = w.steps[0], w.steps[1:]
	}
	if state == quorum.Won {
		w.accepted, w.max = seq.Epoch{Round: items[0].Round, Session: id}, items[0].Max
	}
	return slices.Repeat([]quorum.Outcome{{State: state, Promised: w.promised}}, len(items))
}

// readyLeases attach at once.
type readyLeases struct {
	ownershiptest.Leases
	o     *owned
	holds []*readyHold
}

func (l *readyLeases) Attach(seq.Register, uint64) ownership.Lease {
	h := &readyHold{ownershiptest.Lease{End: l.o.clock.Now() + ownerLease}}
	l.holds = append(l.holds, h)
	return h
}

type readyHold struct{ ownershiptest.Lease }

func (*readyHold) Ready() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// newWilling is an owner whose section was accepted under its epoch by stores that let it
// have the section again.
func newWilling(t *testing.T) (*owned, *willing, *readyLeases) {
	t.Helper()
	o := newOwner(t)
	w := &willing{Registers: o.regs, promised: o.epoch, accepted: o.epoch, max: ownerStep}
	l := &readyLeases{o: o}
	o.holder.Registers, o.holder.Leases, o.sessions = w, l, l
	return o, w, l
}

// untaking peers keep what they are offered, and take nothing.
type untaking struct{ scriptedPeers }

func (*untaking) Take(context.Context, string, seq.Session, []seq.SectionID) ([]seq.SectionID, error) {
	return nil, nil
}

func TestAHandOverThatFailsLeavesTheSectionWithItsOwnerWithoutAGap(t *testing.T) {
	errAway := errors.New("stores are away")
	for name, row := range map[string]struct {
		fail func(o *owned)
		want error
	}{
		"the peer takes no offer":      {func(o *owned) { o.peers.gone = otherSession }, seq.ErrNodeUnfit},
		"the stores release nothing":   {func(o *owned) { o.regs.NoRelease = errAway }, errAway},
		"the peer does not acquire it": {func(o *owned) { o.Owner.peers = &untaking{} }, errNotTaken},
	} {
		o, _, _ := newWilling(t)
		o.must(4)
		row.fail(o)
		moved, err := o.away.handOver(t.Context(), quorum.SessionView{Session: otherSession, Name: "b", Addr: "b:1"}, []seq.SectionID{0})
		if moved != 0 || !errors.Is(err, row.want) {
			t.Errorf("%s: moved %d, %v, want %v", name, moved, err, row.want)
		}
		if got := o.c.State(); got != section.Owned {
			t.Errorf("%s: the section is %v, want it owned again", name, got)
			continue
		}
		if got := o.must(1); got != 5 {
			t.Errorf("%s: then %d, want 5", name, got)
		}
	}
}

func TestAFirstStepThatIsNotConfirmedIsGoneOnFromWhetherItWasWrittenOrNot(t *testing.T) {
	for _, written := range []bool{false, true} {
		o, w, _ := newWilling(t)
		before := seq.Epoch{Round: 3, Session: otherSession}
		o.c.Drop(o.epoch, "")
		w.accepted, w.max, w.steps = before, 40, []quorum.State{quorum.Unknown}
		if got := o.acquire(t.Context(), []seq.SectionID{0}, nil); len(got.owned) != 0 || o.c.State() != section.Absent {
			t.Fatalf("owned %v by a step that was not confirmed", got.owned)
		}
		if written {
			w.accepted, w.max = w.promised, w.asked[0].Max
		}
		got := o.acquire(t.Context(), []seq.SectionID{0}, nil)
		if len(got.owned) != 1 || got.kept != 1 {
			t.Errorf("written %v: owned %v, %d with counters, want it with those of the first try", written, got.owned, got.kept)
			continue
		}
		if n := o.must(1); n != 41 {
			t.Errorf("written %v: first number %d, want 41", written, n)
		}
	}
}

func TestTheArbitersLeaseIsAcquiredAboveWhatWasPromisedAndGivenUpByANodeThatLeaves(t *testing.T) {
	o, w, l := newWilling(t)
	lease := o.arbiterLease
	w.promised, w.max = seq.Epoch{Round: 11, Session: otherSession}, 6
	now := o.clock.Now()
	if lease.Owned() || lease.Held(now) {
		t.Error("the lease is held by a node that never acquired it")
	}
	if lease.Release(t.Context()); len(o.regs.Released) != 0 {
		t.Error("a lease that is not held was given up")
	}
	if ok, after := lease.Acquire(t.Context()); !ok || after != 0 || !lease.Owned() || !lease.Held(now) {
		t.Fatalf("taken %v, after %v", ok, after)
	}
	if want := (quorum.StepItem{Register: seq.ArbiterRegister, Round: 12, Max: 7}); len(w.asked) != 1 || w.asked[0].Max != want.Max || w.asked[0].Round != want.Round || w.asked[0].Register != want.Register {
		t.Errorf("stepped %+v, want %+v", w.asked, want)
	}
	if lease.Held(now + ownerLease) {
		t.Error("held after its lease")
	}
	if lease.Lost(seq.Epoch{Round: 11, Session: ownerSession}); !lease.Owned() {
		t.Error("an older epoch takes the lease away")
	}
	if ok, _ := lease.Acquire(t.Context()); !ok || !l.holds[0].Dropped || l.holds[1].Dropped {
		t.Error("taken anew, the lease before is kept")
	}
	if err := o.Leave(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(o.regs.Released, quorum.LeaseItem{Register: seq.ArbiterRegister, Round: 13}) || lease.Owned() || !l.holds[1].Dropped {
		t.Errorf("released %+v, lease held %v, want it released under round 13", o.regs.Released, lease.Owned())
	}

	o, w, l = newWilling(t)
	lease = o.arbiterLease
	if ok, _ := lease.Acquire(t.Context()); !ok {
		t.Fatal("not taken")
	}
	if lease.Lost(w.promised); lease.Owned() || !l.holds[0].Dropped {
		t.Error("the lease is not lost with its epoch")
	}
	w.steps = []quorum.State{quorum.Unknown}
	if ok, after := lease.Acquire(t.Context()); ok || after != 0 || lease.Owned() {
		t.Error("taken by a step that is not confirmed")
	}
	o.holder.Registers = heldElsewhere{o.regs}
	if ok, after := lease.Acquire(t.Context()); ok || after != ownerLease {
		t.Errorf("held by another: taken %v, after %v, want not before %v", ok, after, ownerLease)
	}
}

func TestAnAcquisitionWaitsForTheFirstThatLetsGo(t *testing.T) {
	var d acquisition
	for _, row := range []struct{ remaining, want time.Duration }{{0, 0}, {5, 5}, {9, 5}, {0, 5}, {3, 3}} {
		if d.wait(row.remaining); d.after != row.want {
			t.Errorf("after %v: wait %v, want %v", row.remaining, d.after, row.want)
		}
	}
}

package allocsvr

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/tenure"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/bubble"
)

// willing are stores that let the session have whatever it asks for. They say that
// accepted was accepted last, and of the next steps what the test says.
type willing struct {
	*scriptedRegisters
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
	idleLeases
	o     *owner
	holds []*readyHold
}

func (l *readyLeases) Attach(seq.Register, uint64) tenure.Hold {
	h := &readyHold{scriptedHold{until: l.o.clock.Now() + ownerLease}}
	l.holds = append(l.holds, h)
	return h
}

type readyHold struct{ scriptedHold }

func (*readyHold) Ready() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// newWilling is an owner whose section was accepted under its epoch by stores that let it
// have the section again.
func newWilling(t *testing.T) (*owner, *willing, *readyLeases) {
	t.Helper()
	o := newOwner(t)
	w := &willing{scriptedRegisters: o.regs, promised: o.epoch, accepted: o.epoch, max: ownerStep}
	l := &readyLeases{o: o}
	o.holder.Registers, o.holder.Leases, o.Alloc.leases = w, l, l
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
		fail func(o *owner)
		want error
	}{
		"the peer takes no offer":      {func(o *owner) { o.peers.gone = otherSession }, seq.ErrNodeUnfit},
		"the stores release nothing":   {func(o *owner) { o.regs.noRelease = errAway }, errAway},
		"the peer does not acquire it": {func(o *owner) { o.Alloc.peers = &untaking{} }, errNotTaken},
	} {
		o, _, _ := newWilling(t)
		o.must(4)
		row.fail(o)
		moved, err := o.handOver(t.Context(), quorum.SessionView{Session: otherSession, Name: "b", Addr: "b:1"}, []seq.SectionID{0})
		if moved != 0 || !errors.Is(err, row.want) {
			t.Errorf("%s: moved %d, %v, want %v", name, moved, err, row.want)
		}
		if got := o.stateOf(o.c); got != owned {
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
		o.c.drop(o.epoch, "")
		w.accepted, w.max, w.steps = before, 40, []quorum.State{quorum.Unknown}
		if got := o.acquire(t.Context(), []seq.SectionID{0}); len(got.owned) != 0 || o.stateOf(o.c) != absent {
			t.Fatalf("owned %v by a step that was not confirmed", got.owned)
		}
		if written {
			w.accepted, w.max = w.promised, w.asked[0].Max
		}
		got := o.acquire(t.Context(), []seq.SectionID{0})
		if len(got.owned) != 1 || got.kept != 1 {
			t.Errorf("written %v: owned %v, %d with counters, want it with those of the first try", written, got.owned, got.kept)
			continue
		}
		if n := o.must(1); n != 41 {
			t.Errorf("written %v: first number %d, want 41", written, n)
		}
	}
}

func TestAStepIsRepeatedUnlessItIsConfirmedOrAnotherOwnerWasPromised(t *testing.T) {
	higher := seq.Epoch{Round: 9, Session: otherSession}
	for name, row := range map[string]struct {
		out   quorum.Outcome
		again int
		state state
		upTo  uint64
	}{
		"confirmed":                  {quorum.Outcome{State: quorum.Won}, 0, owned, 2 * ownerStep},
		"unknown":                    {quorum.Outcome{State: quorum.Unknown}, 1, owned, ownerStep},
		"refused, nobody else owns":  {quorum.Outcome{State: quorum.Refused}, 1, owned, ownerStep},
		"refused under its epoch":    {quorum.Outcome{State: quorum.Refused, Promised: seq.Epoch{Round: 7, Session: ownerSession}}, 1, owned, ownerStep},
		"refused by a higher epoch":  {quorum.Outcome{State: quorum.Refused, Promised: higher}, 0, absent, 0},
		"unknown, and another above": {quorum.Outcome{State: quorum.Unknown, Promised: higher}, 1, owned, ownerStep},
	} {
		o := newOwner(t)
		o.regs.onStep = func(quorum.StepItem) quorum.Outcome { return row.out }
		o.must(ownerStep)
		o.c.mu.Lock()
		o.ahead(o.c, ownerStep+1)
		o.c.mu.Unlock()
		again := o.step()
		if len(again) != row.again || o.stateOf(o.c) != row.state || o.confirmed() != row.upTo {
			t.Errorf("%s: %d again, %v up to %d, want %d, %v up to %d", name, len(again), o.stateOf(o.c), o.confirmed(), row.again, row.state, row.upTo)
		}
	}
}

func TestTheStepperItselfRepeatsAStepOfUnknownOutcome(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		o := newOwner(t)
		steps := 0 // written by the stepper alone
		o.regs.onStep = func(quorum.StepItem) quorum.Outcome {
			if steps++; steps < 3 {
				return quorum.Outcome{State: quorum.Unknown}
			}
			return quorum.Outcome{State: quorum.Won}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { o.stepper.Run(ctx); close(done) }()
		o.must(ownerStep)
		o.c.mu.Lock()
		o.ahead(o.c, ownerStep+1)
		o.c.mu.Unlock()
		time.Sleep(2*(tenure.Retry+tenure.Gather) + time.Millisecond)
		synctest.Wait()
		if steps != 3 || o.confirmed() != 2*ownerStep {
			t.Errorf("%d steps, confirmed up to %d", steps, o.confirmed())
		}
		cancel()
		<-done
	})
}

func TestARequestForUniqueNumbersThatWaitedIsServedWithoutALease(t *testing.T) {
	for mode, want := range map[seq.Mode]bool{seq.UniqueOnly: true, seq.Ordered: false} {
		o := newOwnerOf(t, seq.Space{Name: "user", Sections: 1, Step: ownerStep, Mode: mode})
		o.c.drop(o.epoch, "")
		if !o.c.begin() {
			t.Fatal("not begun")
		}
		waiting := o.take(1)
		if waiting.settled() {
			t.Fatal("served by a section that is being acquired")
		}
		o.c.abandon("")
		o.own(0, ownerStep)
		o.hold.until = o.clock.Now() // over by now
		waiting.settle(t.Context())
		if got := len(waiting.out.Faults) == 0; got != want || got && (!waiting.out.Unordered || waiting.out.First[0] != 1) {
			t.Errorf("mode %v: %+v, want it served: %v", mode, waiting.out, want)
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
	if lease.Release(t.Context()); len(o.regs.released) != 0 {
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
	if ok, _ := lease.Acquire(t.Context()); !ok || !l.holds[0].dropped || l.holds[1].dropped {
		t.Error("taken anew, the lease before is kept")
	}
	if err := o.Leave(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(o.regs.released, quorum.LeaseItem{Register: seq.ArbiterRegister, Round: 13}) || lease.Owned() || !l.holds[1].dropped {
		t.Errorf("released %+v, lease held %v, want it released under round 13", o.regs.released, lease.Owned())
	}

	o, w, l = newWilling(t)
	lease = o.arbiterLease
	if ok, _ := lease.Acquire(t.Context()); !ok {
		t.Fatal("not taken")
	}
	if lease.Lost(w.promised); lease.Owned() || !l.holds[0].dropped {
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

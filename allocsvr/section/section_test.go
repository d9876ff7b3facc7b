package section

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/allocsvr/ownership/ownershiptest"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

func TestARangeWhoseStepIsUnknownIsNotUsedBeforeAStepIsConfirmed(t *testing.T) {
	o := newOwned(t)
	o.must(ownerStep)
	waiting := o.take(5)
	if waiting.Settled() {
		t.Fatalf("%d numbers above the ceiling were handed out", len(waiting.out.First))
	}
	if err := o.refused(waiting); !errors.Is(err, context.Canceled) {
		t.Errorf("while it waits for the step: got %v, want context.Canceled", err)
	}
	var asked []uint64
	state := quorum.Unknown
	o.regs.OnStep = func(item quorum.StepItem) quorum.Outcome {
		asked = append(asked, item.Max)
		return quorum.Outcome{State: state, Max: item.Max, Acks: 1}
	}
	if again := o.step(); len(again) != 1 || again[0].c != o.c {
		t.Errorf("%d sections to be repeated, want the one", len(again))
	}
	if got := o.confirmed(); got != ownerStep {
		t.Errorf("the ceiling is %d after an unknown step, want %d", got, ownerStep)
	}
	if late := o.take(1); late.Settled() {
		t.Errorf("got %d after an unknown step", late.out.First[0])
	}
	state = quorum.Won
	o.stepper.Add(t.Context(), rising{o.Table, o.c}, true)
	if again := o.step(); len(again) != 0 {
		t.Errorf("%d sections to be repeated after a confirmed step", len(again))
	}
	if len(asked) != 2 || asked[1] < asked[0] {
		t.Errorf("asked for %d, want the same or more the second time", asked)
	}
	if got := o.must(1); got != ownerStep+1 {
		t.Errorf("got %d, want %d", got, ownerStep+1)
	}
}

func TestANackEndsTheSectionAtOnceAndWithItWhatWasConfirmed(t *testing.T) {
	o := newOwned(t)
	hold := o.hold
	o.must(ownerStep/2 + 1) // a step is due, half of the range is left
	o.regs.OnStep = func(quorum.StepItem) quorum.Outcome {
		return quorum.Outcome{State: quorum.Refused, Promised: seq.Epoch{Round: 8, Session: otherSession}, Err: quorum.ErrNack}
	}
	if again := o.step(); len(again) != 0 {
		t.Error("a step is repeated after a NACK")
	}
	if err := o.refused(o.take(1)); !errors.Is(err, seq.ErrNotOwner) {
		t.Errorf("got %v, want ErrNotOwner", err)
	}
	if !hold.Dropped {
		t.Error("the lease is kept")
	}
	o.c.confirm(o.epoch, 10*ownerStep) // an ack that comes late
	if got := o.c.State(); got != Absent {
		t.Errorf("the section is %v, want Absent", got)
	}
}

func TestEveryBatchAsksWhenTheLeaseEnds(t *testing.T) {
	o := newOwned(t)
	o.must(1)
	o.clock.Advance(ownerLease - 1)
	o.must(1)
	o.clock.Advance(1)
	if err := o.refused(o.take(1)); !errors.Is(err, seq.ErrNoLease) {
		t.Errorf("at the end of the lease: got %v, want ErrNoLease", err)
	}
	o.hold.End = o.clock.Now() + 1
	if got := o.must(1); got != 3 {
		t.Errorf("after a renewal: got %d, want 3", got)
	}
	o.hold.End = 0 // the stores no longer back it, and no time has passed
	if err := o.refused(o.take(1)); !errors.Is(err, seq.ErrNoLease) {
		t.Errorf("without W stores: got %v, want ErrNoLease", err)
	}
}

func TestARequestThatWaitedAsksTheClockWhenItIsServed(t *testing.T) {
	o := newOwned(t)
	waiting := o.take(ownerStep + 1)
	if waiting.Settled() {
		t.Fatal("numbers above the ceiling were handed out")
	}
	o.clock.Advance(ownerLease) // somebody else may have the section by now
	o.c.confirm(o.epoch, 3*ownerStep)
	if err := o.refused(waiting); !errors.Is(err, seq.ErrNoLease) {
		t.Errorf("got %v, want ErrNoLease", err)
	}
	if got, _ := o.c.table.Get(1); got != 0 {
		t.Errorf("uid 1 stands at %d, want 0", got)
	}
}

func TestNoNumberIsTakenAfterTheSeal(t *testing.T) {
	o := newOwned(t)
	o.must(3)
	o.c.mu.Lock()
	o.c.want(ownerStep, o.clock.Now())
	o.c.mu.Unlock()
	epoch, table, ok := o.c.Seal()
	if !ok || epoch != o.epoch {
		t.Fatalf("got %v, %v", epoch, ok)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if step, ok := (rising{o.Table, o.c}).Next(); ok {
		t.Errorf("a sealed section is stepped to %d", step.Max)
	}
	o.c.confirm(o.epoch, 3*ownerStep)
	if late := o.take(1); late.Settled() {
		t.Errorf("got %d at once", late.out.First[0])
	} else if err := o.refused(late); !errors.Is(err, context.Canceled) {
		t.Errorf("a request: got %v, want it to wait", err)
	}
	if _, err := o.Raise(gone, o.c.space, seq.Plain(1), 50, Reach{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a raise: got %v, want it to wait", err)
	}
	if _, _, again := o.c.Seal(); again {
		t.Error("sealed twice")
	}
	if got, _ := table.Get(1); got != 3 || table.High() != 3 {
		t.Errorf("uid 1 stands at %d, the highest at %d, want 3 as sealed", got, table.High())
	}
}

// Handed-out numbers are below the ceiling that W stores have. A section that began otherwise must not
// serve, whatever the cause.
func TestASectionIsInstalledOnlyBelowItsCeilingUnderItsEpochInALivingNode(t *testing.T) {
	hold := &ownershiptest.Lease{}
	for _, row := range []struct {
		name      string
		high      uint64
		confirmed uint64
		epoch     uint64 // above the expected one
		gone      bool
		ok        bool
		err       error
		then      State
	}{
		{name: "below", high: 39, confirmed: 40, ok: true, then: Owned},
		{name: "at the ceiling", high: 40, confirmed: 40, ok: true, then: Owned},
		{name: "above", high: 41, confirmed: 40, err: ErrInvariant, then: Acquiring},
		{name: "under an epoch that was lost", high: 39, confirmed: 40, epoch: 1, then: Acquiring},
		{name: "in a node that has left", high: 39, confirmed: 40, gone: true, then: Absent},
	} {
		o := newOwned(t)
		o.c.Drop(o.epoch, "")
		o.c.Begin()
		o.c.Expect(o.epoch)
		o.closed.Store(row.gone)
		e := o.epoch
		e.Round += row.epoch
		ok, err := o.c.install(e, counters.New(row.high), row.confirmed, hold, o.Table)
		if ok != row.ok || !errors.Is(err, row.err) || o.c.state != row.then {
			t.Errorf("%s: got %v, %v, state %v, want %v, %v, %v", row.name, ok, err, o.c.state, row.ok, row.err, row.then)
		}
	}
}

// A renew may tell of the release before the hand-over that released has ended.
func TestASealedSectionIsForgottenByItsHandOverOnly(t *testing.T) {
	const successor = "127.0.0.1:9"
	o := newOwned(t)
	if _, _, ok := o.c.Seal(); !ok {
		t.Fatal("not sealed")
	}
	o.Lose(o.c.id, o.epoch)
	if got := o.c.State(); got != Sealed {
		t.Fatalf("the section is %v after a store told of the release, want %v", got, Sealed)
	}
	if !o.c.Drop(o.epoch, successor) || o.c.Successor() != successor {
		t.Errorf("callers are sent to %q, want %q", o.c.Successor(), successor)
	}
}

func TestAStepIsRepeatedUnlessItIsConfirmedOrAnotherOwnerWasPromised(t *testing.T) {
	higher := seq.Epoch{Round: 9, Session: otherSession}
	for name, row := range map[string]struct {
		out   quorum.Outcome
		again int
		state State
		upTo  uint64
	}{
		"confirmed":                  {quorum.Outcome{State: quorum.Won}, 0, Owned, 2 * ownerStep},
		"unknown":                    {quorum.Outcome{State: quorum.Unknown}, 1, Owned, ownerStep},
		"refused, nobody else owns":  {quorum.Outcome{State: quorum.Refused}, 1, Owned, ownerStep},
		"refused under its epoch":    {quorum.Outcome{State: quorum.Refused, Promised: seq.Epoch{Round: 7, Session: ownSession}}, 1, Owned, ownerStep},
		"refused by a higher epoch":  {quorum.Outcome{State: quorum.Refused, Promised: higher}, 0, Absent, 0},
		"unknown, and another above": {quorum.Outcome{State: quorum.Unknown, Promised: higher}, 1, Owned, ownerStep},
	} {
		o := newOwned(t)
		o.regs.OnStep = func(quorum.StepItem) quorum.Outcome { return row.out }
		o.must(ownerStep)
		o.c.mu.Lock()
		o.ahead(t.Context(), o.c, ownerStep+1)
		o.c.mu.Unlock()
		again := o.step()
		if len(again) != row.again || o.c.State() != row.state || o.confirmed() != row.upTo {
			t.Errorf("%s: %d again, %v up to %d, want %d, %v up to %d", name, len(again), o.c.State(), o.confirmed(), row.again, row.state, row.upTo)
		}
	}
}

func TestARequestThatWaitsForAStepOfFullDisksSaysSo(t *testing.T) {
	o := newOwned(t)
	full := quorum.Outcome{State: quorum.Refused, Err: fmt.Errorf("s1: %w", seq.ErrStoreFull)}
	o.regs.OnStep = func(quorum.StepItem) quorum.Outcome { return full }
	o.must(ownerStep)
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	waited := func() error {
		o.step()
		return o.await(late, o.c, make(chan struct{}))
	}
	o.c.mu.Lock()
	o.ahead(t.Context(), o.c, ownerStep+1)
	o.c.mu.Unlock()
	if err := waited(); !errors.Is(err, seq.ErrStoreFull) || !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "is owned") {
		t.Errorf("got %v", err)
	}
	full = quorum.Outcome{State: quorum.Won}
	o.stepper.Add(t.Context(), rising{o.Table, o.c}, false) // as the stepper repeats it
	if err := waited(); errors.Is(err, seq.ErrStoreFull) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with room again: got %v", err)
	}
}

func TestTheStepperItselfRepeatsAStepOfUnknownOutcome(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		o := newOwned(t)
		steps := 0 // written by the stepper alone
		o.regs.OnStep = func(quorum.StepItem) quorum.Outcome {
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
		o.ahead(t.Context(), o.c, ownerStep+1)
		o.c.mu.Unlock()
		time.Sleep(2*(ownership.Retry+ownership.Gather) + time.Millisecond)
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
		o := newOwnedOf(t, seq.Space{Name: "user", Sections: 1, Step: ownerStep, Mode: mode})
		o.c.Drop(o.epoch, "")
		if !o.c.Begin() {
			t.Fatal("not begun")
		}
		waiting := o.take(1)
		if waiting.Settled() {
			t.Fatal("served by a section that is being acquired")
		}
		o.c.Abandon("")
		o.own(0, ownerStep)
		o.hold.End = o.clock.Now() // over by now
		waiting.Settle(t.Context())
		if got := len(waiting.out.Faults) == 0; got != want || got && (!waiting.out.Unordered || waiting.out.First[0] != 1) {
			t.Errorf("mode %v: %+v, want it served: %v", mode, waiting.out, want)
		}
	}
}

func TestAStrictCheckWithoutAQuorumSaysSo(t *testing.T) {
	o := newOwnedOf(t, seq.Space{Name: "strict", Sections: 1, Step: ownerStep, Mode: seq.Strict})
	o.regs.OnProbe = func() quorum.Outcome {
		return quorum.Outcome{State: quorum.Unknown, Err: fmt.Errorf("%w: store store-2: away", seq.ErrNoQuorum)}
	}
	if err := o.Take(t.Context(), o.c.space, seq.PlainAll(1), nil).Faults[0].Err; rpc.CodeOf(err) != pb.ErrorCode_ERROR_CODE_NO_QUORUM {
		t.Errorf("got %v, want NO_QUORUM", err)
	}
}

package section

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// stepping confirms every step that is asked for, until the test ends.
func stepping(t *testing.T, o *owned) {
	o.regs.OnStep = func(quorum.StepItem) quorum.Outcome { return quorum.Outcome{State: quorum.Won} }
	ctx, stop := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() {
		for ctx.Err() == nil {
			o.stepper.Flush(ctx)
			runtime.Gosched()
		}
	})
	t.Cleanup(func() { stop(); run.Wait() })
}

func TestNumbersOfAKeyRiseWithTheIndexAlsoWhereTheCeilingIsInTheWay(t *testing.T) {
	for _, mode := range []seq.Mode{seq.Ordered, seq.UniqueOnly} {
		for _, sections := range []uint32{1, 3} {
			t.Run(fmt.Sprint(mode, sections), func(t *testing.T) {
				o := newOwnedOf(t, seq.Space{Name: "user", Sections: sections, Step: ownerStep, Mode: mode})
				for id := range seq.SectionID(sections - 1) {
					o.ownAt(id+1, 0, ownerStep)
				}
				stepping(t, o)
				draw, last := rand.New(rand.NewPCG(20, uint64(sections))), map[seq.UID]uint64{}
				for range 300 {
					uids, counts := make([]seq.UID, 1+draw.IntN(40)), []uint32(nil)
					for i := range uids {
						uids[i] = seq.UID(draw.Uint64N(4)) << seq.BlockBits
						counts = append(counts, 1+draw.Uint32N(2)*draw.Uint32N(3*ownerStep))
					}
					got := o.Take(t.Context(), o.c.space, seq.PlainAll(uids...), counts)
					if len(got.Faults) > 0 {
						t.Fatal(got.Faults)
					}
					for i, uid := range uids {
						if got.First[i] != last[uid]+1 || got.Last[i] != last[uid]+uint64(counts[i]) {
							t.Fatalf("uid %d stands at %d, index %d got %d to %d of %d: %d", uid, last[uid], i, got.First[i], got.Last[i], counts[i], uids)
						}
						last[uid] = got.Last[i]
					}
				}
			})
		}
	}
}

// behind begins two takes of uid 1 that share a line, of which the first one has to wait.
func behind(t *testing.T) (o *owned, before, after *Taking) {
	o = newOwned(t)
	o.c.Drop(o.epoch, "")
	o.c.Begin()
	before, after = new(Taking), new(Taking)
	var line Line
	begin := func(k *Taking) {
		k.Set(o.Table, o.c.space, seq.PlainAll(1), nil)
		k.Behind(&line)
		k.Pass(o.BatchClock())
	}
	begin(before)
	o.c.Expect(o.epoch)
	o.c.Abandon("")
	o.own(0, ownerStep)
	begin(after)
	return o, before, after
}

func TestAKeyThatWaitsInOneBatchWaitsInTheNextOneOfTheCall(t *testing.T) {
	_, before, after := behind(t)
	if before.Settled() || after.Settled() {
		t.Fatal("one of them does not wait")
	}
	before.Settle(t.Context())
	after.Settle(t.Context())
	if first, then := before.out.First[0], after.out.First[0]; first != 1 || then != 2 {
		t.Errorf("got %d and then %d, want 1 and 2", first, then)
	}
}

func TestWhatIsToBeRepeatedIsNotOvertakenByWhatWaitedBehindIt(t *testing.T) {
	o, before, after := behind(t)
	o.c.Drop(o.epoch, "")
	before.Settle(t.Context())
	o.c.Begin()
	o.c.Expect(o.epoch)
	o.c.Abandon("")
	o.own(0, ownerStep)
	after.Settle(t.Context())
	for _, k := range []*Taking{before, after} {
		if len(k.out.Faults) != 1 || !errors.Is(k.out.Faults[0].Err, seq.ErrNotOwner) {
			t.Errorf("got %v, want %v for both", k.out, seq.ErrNotOwner)
		}
	}
}

func TestACountThatDoesNotFitHoldsUpNoSmallerOne(t *testing.T) {
	o := newOwned(t)
	o.c.Drop(o.epoch, "")
	o.own(uint64(seq.MaxSeq)-10, uint64(seq.MaxSeq))
	got := o.Take(t.Context(), o.c.space, seq.PlainAll(1, 1), []uint32{20, 1})
	if len(got.Faults) != 1 || !errors.Is(got.Faults[0].Err, seq.ErrOverflow) || got.First[1] != uint64(seq.MaxSeq)-9 {
		t.Errorf("got %v, want %v for the first and a number for the second", got, seq.ErrOverflow)
	}
}

func TestAStrictBatchIsCheckedByTheFirstEpochThatItTookUnder(t *testing.T) {
	o := newOwnedOf(t, seq.Space{Name: "strict", Sections: 1, Step: ownerStep, Mode: seq.Strict})
	o.regs.OnProbe = func() quorum.Outcome { return quorum.Outcome{State: quorum.Won, Promised: o.epoch} }
	k := o.Begin(o.c.space, seq.PlainAll(1, 2), []uint32{1, 2 * ownerStep})
	o.c.Drop(o.epoch, "")
	o.epoch.Round += 2 // another node may have served under the one between
	o.own(ownerStep, 4*ownerStep)
	k.Settle(t.Context())
	if len(k.out.Faults) != 2 || !errors.Is(k.out.Faults[0].Err, seq.ErrNoLease) {
		t.Errorf("got %v, want %v", k.out, seq.ErrNoLease)
	}
}

func TestOneStepIsEnoughForAllThatAKeyIsAskedForInABatch(t *testing.T) {
	const n = 1500
	o := newOwned(t)
	steps := 0
	o.regs.OnStep = func(quorum.StepItem) quorum.Outcome { steps++; return quorum.Outcome{State: quorum.Won} }
	uids, counts := make([]seq.UID, n), make([]uint32, n)
	for i := range uids {
		uids[i], counts[i] = 7, seq.MaxCount
	}
	k := o.Begin(o.c.space, seq.PlainAll(uids...), counts)
	served := make(chan struct{})
	go func() { k.Settle(t.Context()); close(served) }()
	for waits := true; waits; runtime.Gosched() {
		o.stepper.Flush(t.Context())
		select {
		case <-served:
			waits = false
		default:
		}
	}
	if last := k.out.Last[n-1]; len(k.out.Faults) > 0 || last != n*seq.MaxCount || steps > 2 {
		t.Errorf("got up to %d with %d steps, %d faults; want up to %d with 1, and at most one ahead", last, steps, len(k.out.Faults), n*seq.MaxCount)
	}
}

func TestARequestThatWaitsForItsCeilingSaysSo(t *testing.T) {
	o := newOwned(t)
	if err := o.refused(o.take(2 * ownerStep)); !strings.Contains(err.Error(), "waits for the stores to confirm a ceiling of 300, beyond 100") {
		t.Errorf("got %v", err)
	}
}

func TestStepsOfAllSectionsOfABatchAreAskedForAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		o := newOwnedOf(t, seq.Space{Name: "user", Sections: 8, Step: ownerStep})
		var uids []seq.UID
		for id := range seq.SectionID(8) {
			if id > 0 {
				o.ownAt(id, 0, ownerStep)
			}
			uid := seq.UID(0)
			for o.c.space.SectionOf(uid) != id {
				uid += 1 << seq.BlockBits
			}
			uids = append(uids, uid)
		}
		o.regs.OnStep = func(quorum.StepItem) quorum.Outcome { return quorum.Outcome{State: quorum.Won} }
		k, served := o.Begin(o.c.space, seq.PlainAll(uids...), slices.Repeat([]uint32{2 * ownerStep}, len(uids))), make(chan struct{})
		go func() { k.Settle(t.Context()); close(served) }()
		synctest.Wait()
		if told, _ := o.stepper.Flush(t.Context()); told != len(uids) {
			t.Errorf("%d steps were asked for together, want %d", told, len(uids))
		}
		for waits := true; waits; {
			synctest.Wait()
			o.stepper.Flush(t.Context()) // those ahead
			select {
			case <-served:
				waits = false
			default:
			}
		}
		if len(k.out.Faults) > 0 {
			t.Error(k.out.Faults)
		}
	})
}

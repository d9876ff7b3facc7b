package ownership

import (
	"context"
	"errors"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Step is a ceiling as it is asked for.
type Step struct {
	Register seq.Register
	Epoch    seq.Epoch // of this session, under which the register is owned
	Max      uint64
}

// Owned is a register that this session owns. Raise calls Next, and then one of the other
// methods with what Next gave. They may take locks that are held while Stepper.Add is called.
type Owned interface {
	comparable
	// Next returns the step that is due now. It returns false if no step is due any more.
	Next() (Step, bool)
	// Confirmed is called when W stores have the ceiling. Another epoch or another session may own the
	// register by now.
	Confirmed(Step)
	// Unconfirmed is called when the ceiling is not confirmed, though it may be on disks. The old ceiling
	// stays. The next step must be under the same epoch. After an unknown outcome it must go as far or
	// farther.
	Unconfirmed(Step, quorum.Outcome)
	// Lost is called when a higher epoch was promised. No more numbers may be handed out.
	Lost(Step, quorum.Outcome)
}

// Raise writes the steps that are due, in one message a store, and returns the registers
// whose step is to be repeated. One that is named twice is stepped once.
func Raise[R Owned](ctx context.Context, h *Holder, due []R) (again []R) {
	steps, items := plan(due)
	if len(items) == 0 {
		return nil
	}
	for i, out := range h.Registers.Step(ctx, h.Session, items) {
		r := due[steps[i].of]
		switch step := steps[i].Step; {
		case out.State == quorum.Won:
			r.Confirmed(step)
		case errors.Is(out.Err, quorum.ErrNack), out.State == quorum.Refused && step.Epoch.Less(out.Promised):
			r.Lost(step, out)
		default:
			r.Unconfirmed(step, out)
			again = append(again, r)
		}
	}
	return again
}

// planned is a step and the index of the register that it is for.
type planned struct {
	Step
	of int
}

func plan[R Owned](due []R) (steps []planned, items []quorum.StepItem) {
	seen := make(map[R]bool, len(due))
	for i, r := range due {
		if seen[r] {
			continue
		}
		seen[r] = true
		if s, ok := r.Next(); ok {
			steps = append(steps, planned{s, i})
			items = append(items, quorum.StepItem{Register: s.Register, Round: s.Epoch.Round, Max: s.Max})
		}
	}
	return steps, items
}

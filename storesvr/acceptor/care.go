package acceptor

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// ErrGrace is returned by Merge during the grace: who may rely on what was leased before
// the start is not known here. Merge again when it is over.
var ErrGrace = errors.New("in grace after a restart")

// Dump is the state on disk of up to most registers, in the order of their names, from
// the first one after after; none only at the end. Payloads are shared and must not be
// written to.
func (a *Acceptor) Dump(after seq.Register, most int) []quorum.RegisterState {
	from, found := slices.BinarySearch(a.registers.names, after)
	if found {
		from++
	}
	out := make([]quorum.RegisterState, 0, min(most, len(a.registers.names)-from))
	for _, r := range a.registers.names[from:] {
		if len(out) == most {
			break
		}
		if st, known := a.registers.find(r).committed(); known {
			out = append(out, st.Of(r))
		}
	}
	return out
}

// Merge takes in what another store has of a register, and says whether that changed
// anything. Nothing may be answered before the Changes are committed.
//
// A learner, which neither votes nor leases, takes all of it. A voter takes no documents,
// which quorum.Group.RepairDocument brings it by votes; and where a higher promise than
// its own stands against a lease here, it promises a still higher epoch, of by, a session
// that never takes a register, and protects the lease: it keeps all other sessions out
// until it would have ended, however often the register is merged again. So its holder
// is as safe as before, here and after a restart.
//
// The copy of an exact section takes the place of one that stands lower, whole. A voter takes
// it only at or above the promise that it had: the session that has that promise was told where this
// store stands, which must not change under a lower epoch.
//
// ErrGrace and seq.ErrBadArgument changed nothing; ErrInvariant is fatal.
func (a *Acceptor) Merge(st quorum.RegisterState, by seq.Session, learner bool, now time.Duration) (changed bool, err error) {
	r := st.Register
	reg := a.registers.find(r)
	if err := r.Validate(); err != nil {
		return false, fmt.Errorf("merge: %w: %w", seq.ErrBadArgument, err)
	}
	c := a.copyOf(r)
	if st.Promised.Less(st.Accepted) || by == 0 || reg == nil && !r.OnDemand() || r.Leased() && c == nil && len(st.Payload) > 0 {
		return false, fmt.Errorf("merge %s: %w: no state that a store can have", r, seq.ErrBadArgument)
	}
	if !learner && !r.Leased() {
		return false, nil
	}
	if c != nil {
		return a.mergeCopy(st, by, learner, now, reg, c)
	}
	return a.mergeRegister(st, by, learner, now, reg)
}

// mergeCopy is Merge of an exact section.
func (a *Acceptor) mergeCopy(st quorum.RegisterState, by seq.Session, learner bool, now time.Duration, reg *register, c *exact.Copy) (changed bool, err error) {
	whole, err := CopyOf(st, c.Window())
	if err != nil {
		return false, fmt.Errorf("merge: %w: %w", seq.ErrBadArgument, err)
	}
	take := c.At().Less(whole.At()) && (learner || !whole.At().Epoch.Less(reg.state().Promised))
	changed, err = a.mergeRegister(quorum.RegisterState{Register: st.Register, Promised: st.Promised}, by, learner, now, reg)
	if err != nil || !take {
		return changed, err
	}
	// Its times were checked where its records came in.
	return true, a.take(st.Register, c, &exact.Change{Whole: whole, Text: st.Payload}, math.MaxInt64)
}

// CopyOf is the copy that goes with the state of an exact section, an empty one if it has none. Its ids are
// kept for window, in milliseconds. An error says what is wrong with the state.
func CopyOf(st quorum.RegisterState, window int64) (*exact.State, error) {
	whole := &exact.State{}
	if len(st.Payload) > 0 {
		var err error
		if whole, err = exact.ReadState(st.Payload, window); err != nil {
			return nil, fmt.Errorf("%s: its copy: %w", st.Register, err)
		}
	}
	if at := (exact.Position{Epoch: st.Accepted, Index: st.PayloadMax}); whole.At() != at || st.Max != 0 {
		return nil, fmt.Errorf("%s: its copy stands at %v, expected %v, and its max is %d, expected 0", st.Register, whole.At(), at, st.Max)
	}
	return whole, nil
}

func (a *Acceptor) mergeRegister(st quorum.RegisterState, by seq.Session, learner bool, now time.Duration, reg *register) (changed bool, err error) {
	r, old := st.Register, reg.state()
	merged := quorum.Merge(old.Of(r), st)
	next := State{Promised: merged.Promised, Accepted: merged.Accepted, Max: merged.Max, Payload: merged.Payload, PayloadMax: merged.PayloadMax}
	if reg != nil && same(old, next) {
		return false, nil
	}
	if learner || next.Promised == old.Promised {
		return true, a.set(r, reg, next)
	}
	if a.Grace(now) > 0 {
		return false, fmt.Errorf("merge %s: %w", r, ErrGrace)
	}
	// Also where the higher promise is the holder's own: it may be of an attempt from before
	// the one under which it serves.
	if holder, remaining := a.leases.holder(r, old.Promised, now); holder != 0 {
		next.Promised = seq.Epoch{Round: next.Promised.Round + 1, Session: by}
		a.leases.protect(r, holder, now+remaining)
	}
	a.leases.vacate(r, old.Promised, next.Promised.Session)
	return true, a.set(r, reg, next)
}

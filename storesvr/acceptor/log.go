package acceptor

import (
	"errors"
	"fmt"
	"math"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// A section of an exact space has a copy beside its register, whose max stays 0. The register
// has the promise, the copy all that was accepted:
//
//	the copy's epoch <= promised

// copies are the copies of one store.
type copies struct {
	find      func(seq.SectionID) *exact.Copy // Config.Copies
	entries   []exact.Entry                   // since Committed
	uids, ids int                             // of all copies
	bytes     int64                           // that these take in memory
}

// copyOf is the copy of a section of an exact space, nil for any other register.
func (s *copies) copyOf(r seq.Register) *exact.Copy {
	if id, ok := r.Section(); ok && s.find != nil {
		return s.find(id)
	}
	return nil
}

// count counts what the copies have. ErrInvariant for one whose epoch was not promised.
func (s *copies) count(of *registers) error {
	for _, reg := range of.sections {
		if reg == nil {
			continue
		}
		c := s.copyOf(reg.name)
		if c == nil {
			continue
		}
		if at := c.At(); reg.now.Promised.Less(at.Epoch) {
			return fmt.Errorf("%w: %s: its copy stands at %v, above promised %s", ErrInvariant, reg.name, at, reg.now.Promised)
		}
		s.weigh(c.Borrow(), 1)
	}
	return nil
}

// weigh adds what a copy has, or takes it off.
func (s *copies) weigh(of *exact.State, sign int) {
	s.uids, s.ids, s.bytes = s.uids+sign*of.UIDs(), s.ids+sign*of.IDs(), s.bytes+int64(sign)*of.Bytes()
}

// Kept returns the number of UIDs and of request ids that exact spaces have here, and the memory that
// these take.
func (s *copies) Kept() (uids, ids int, bytes int64) { return s.uids, s.ids, s.bytes }

// append has the copy take a change in, under an epoch that is not below the promise. The
// promise is raised whether or not the copy can take it.
func (a *Acceptor) append(item quorum.StepItem, e seq.Epoch, reg *register, c *exact.Copy, limits Limits) (quorum.Result, error) {
	r, st := item.Register, reg.state()
	change, err := exact.ReadChange(item.Log, c.Window())
	switch at := change.Epoch(); {
	case err != nil:
		return a.refused(r, st, err.Error()), nil
	case at != e:
		return a.refused(r, st, fmt.Sprintf("a change of epoch %v, sent under %v", at, e)), nil
	}
	if e != st.Promised {
		a.leases.vacate(r, st.Promised, e.Session)
		st.Promised = e
		if err := a.set(r, reg, st); err != nil {
			return quorum.Result{}, err
		}
	}
	switch err := a.take(r, c, &change, limits.latest()); {
	case errors.Is(err, exact.ErrElsewhere):
		res := a.resultOf(quorum.VerdictElsewhere, r, st)
		res.Message = err.Error()
		return res, nil
	case err != nil:
		return a.refused(r, st, err.Error()), nil
	}
	res := a.resultOf(quorum.VerdictOK, r, st)
	res.Accepted = c.At().Epoch
	return res, nil
}

// take has the copy take a change in, and notes what is to be written of it.
func (s *copies) take(r seq.Register, c *exact.Copy, change *exact.Change, latest int64) error {
	entry := exact.Entry{}
	entry.Section, _ = r.Section()
	s.weigh(c.Borrow(), -1)
	defer func() { s.weigh(c.Borrow(), 1) }()
	if change.Whole == nil {
		taken, err := c.Append(&change.Batch, latest)
		if err != nil || len(taken) == 0 {
			return err
		}
		entry.Records = taken
	} else {
		filled, err := c.Fill(change.Whole, latest)
		if err != nil || !filled {
			return err
		}
		entry.Whole = change.Text
	}
	s.entries = append(s.entries, entry)
	return nil
}

func (l Limits) latest() int64 {
	if l.Latest == 0 {
		return math.MaxInt64
	}
	return l.Latest
}

// Entries is what the copies have taken in since Committed, in order: to be made durable after
// Changes, which have the promises.
func (s *copies) Entries() []exact.Entry { return s.entries }

// Position shows a register and where its copy stands, in memory, as answers to reads of
// copies are to be that wait for the commit of all that was applied by now.
func (a *Acceptor) Position(r seq.Register) quorum.Result {
	reg := a.registers.find(r)
	c := a.copyOf(r)
	switch {
	case reg == nil:
		return a.resultOf(quorum.VerdictUnknown, r, State{})
	case c == nil:
		return a.refused(r, reg.state(), "a copy of a section that is not exact")
	}
	res := a.resultOf(quorum.VerdictOK, r, reg.state())
	res.Accepted, res.Index = c.At().Epoch, c.At().Index
	return res
}

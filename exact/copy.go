package exact

import (
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
)

// Batch is what an owner sends to the copies of its section at once: records, or none to ask
// whether the owner still is the owner.
type Batch struct {
	Epoch   seq.Epoch // the owner's epoch, which the last record has too
	After   Position  // of the record before the first
	Records []Record
}

// End returns the position of a copy that has taken the batch in.
func (b *Batch) End() Position {
	if n := len(b.Records); n > 0 {
		return b.Records[n-1].at()
	}
	return b.After
}

// time returns the time of the last record, zero if there is none.
func (b *Batch) time() int64 {
	if n := len(b.Records); n > 0 {
		return b.Records[n-1].Time
	}
	return 0
}

// Copy is a section at one store. The store must keep the epochs of the Copy as its promise: it takes in
// nothing under a lower epoch, and the records that it takes in promise their epoch. The Copy is ahead of
// the disk. A store answers only when the disk has the records.
type Copy struct {
	state  *State
	window int64
}

// NewCopy makes an empty copy; window is how long ids are kept, milliseconds.
func NewCopy(window int64) *Copy { return &Copy{state: &State{}, window: window} }

// Window returns for how long ids are kept, in milliseconds.
func (c *Copy) Window() int64 { return c.window }

// At returns the position of the copy.
func (c *Copy) At() Position { return c.state.at }

// State returns a copy of all that the copy has.
func (c *Copy) State() *State { return c.state.Clone() }

// Append adds the records of b that follow the copy, all or none. It returns the records that the copy
// lacked, for the disk. latest bounds their times, unless the copy already has a later time. If the error
// is nil, the copy has the whole batch. A copy that is further on under the batch's epoch has it too,
// because an index of an epoch has one record. Append returns ErrElsewhere, ErrTime or ErrBadRecord.
func (c *Copy) Append(b *Batch, latest int64) (taken []Record, err error) {
	at, end := c.state.at, b.End()
	switch {
	case end.Epoch != b.Epoch:
		return nil, fmt.Errorf("%w: batch of epoch %v ends at %v", ErrBadRecord, b.Epoch, end)
	case at.Epoch == b.Epoch && at.Index >= end.Index:
		return nil, nil
	}
	// Before where it stands: a store whose clock is behind would refuse a whole copy, too.
	if t := b.time(); t > max(latest, c.state.time) {
		return nil, fmt.Errorf("%w: %d, expected at most %d", ErrTime, t, latest)
	}
	for i := range b.Records {
		if b.Records[i].follows(at) {
			return b.Records[i:], c.Take(b.Records[i:])
		}
	}
	return nil, fmt.Errorf("%w: at %v, expected %v", ErrElsewhere, at, b.After)
}

// Take adds records that follow the copy, which Append returned before and which are read back from a disk.
// If it returns ErrBadRecord, it has added none.
func (c *Copy) Take(records []Record) error {
	again, err := c.state.check(records, c.window)
	if err != nil {
		return err
	}
	for i := range records {
		c.state.apply(&records[i], again[i], c.window)
	}
	return nil
}

// Fill replaces the copy by a whole one, under the epoch of its last record. If the copy already has as
// much of that epoch, Fill leaves it and returns false, because a quorum may need the further records of
// this copy. Fill returns ErrTime if s is later than latest.
func (c *Copy) Fill(s *State, latest int64) (filled bool, err error) {
	switch {
	case c.state.at.Epoch == s.at.Epoch && c.state.at.Index >= s.at.Index:
		return false, nil
	case s.time > max(latest, c.state.time):
		return false, fmt.Errorf("%w: %d, expected at most %d", ErrTime, s.time, latest)
	}
	c.state = s
	return true, nil
}

// Restore makes a copy of a state that is read back from a disk.
func Restore(s *State, window int64) *Copy { return &Copy{state: s, window: window} }

// Borrow returns the copy's own state. The caller may read it and must not keep it.
func (c *Copy) Borrow() *State { return c.state }

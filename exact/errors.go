package exact

import (
	"errors"
	"fmt"
)

var (
	// ErrBadRecord: records that cannot follow what a copy has. Of its owner: a fault.
	ErrBadRecord = errors.New("record does not follow")
	// ErrElsewhere: the copy stands elsewhere, so that records cannot follow; a whole copy can.
	ErrElsewhere = errors.New("the copy stands elsewhere")
	// ErrTime: a time too far beyond the clock.
	ErrTime = errors.New("time too far beyond the clock")
	// ErrConflict: the id was used for another count. Do not retry.
	ErrConflict = errors.New("request id was used for another count")
	// ErrExpired: the request was first sent longer ago than ids are kept. It may have got its
	// numbers; it gets no others. Do not retry.
	ErrExpired = errors.New("request id has expired")
	// ErrFull: no more UIDs and ids are kept. Retry later: ids expire.
	ErrFull = errors.New("no room for uids and request ids")
	// ErrSpent: the sequence ends at seq.MaxSeq. Do not retry.
	ErrSpent = errors.New("sequence is spent")
)

// Conflict is an ErrConflict with the numbers that the id has got.
type Conflict struct {
	First uint64
	Count uint32
	Asked uint32
}

// Error names the numbers that the id has got.
func (c *Conflict) Error() string {
	return fmt.Sprintf("%v: %d numbers from %d, not %d", ErrConflict, c.Count, c.First, c.Asked)
}

// Unwrap returns ErrConflict.
func (c *Conflict) Unwrap() error { return ErrConflict }

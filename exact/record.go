package exact

import (
	"fmt"
	"math"

	"github.com/seqsvr/seqsvr/seq"
)

// Kind says what a record does.
type Kind uint8

const (
	// Take assigns Count numbers from First on.
	Take Kind = iota + 1
	// Raise lifts a UID to First, so that the next number is First+1.
	Raise
	// Began is the first record of an epoch.
	Began
	// Passed only tells the time, so that ids are dropped from a section that is idle.
	Passed
)

// MaxID bounds the length of a request's id in bytes.
const MaxID = seq.MaxRequestID

// Record is one entry of a section's log.
type Record struct {
	Epoch seq.Epoch // under which it was appended
	Index uint64    // 1 for the first of a section, without a hole
	Prev  seq.Epoch // of the record before: with Index it names all that came before
	Kind  Kind
	UID   seq.UID
	First uint64 // of a Take the first number, of a Raise the last that is skipped
	Count uint32 // of a Take, 1 to seq.MaxCount
	ID    string // of a Take that may be repeated
	Sent  int64  // when its caller first sent it, milliseconds since 1970
	Time  int64  // of the section, milliseconds since 1970: it never falls
}

// Position is the last record of a copy. Two copies at one position are equal. An epoch belongs to one
// owner, which gives an index to one record only, and Prev ties each record to the records before it.
type Position struct {
	Epoch seq.Epoch
	Index uint64
}

// Less reports whether p is older than o, for a takeover. The epoch counts first, because a longer copy of
// an older epoch has records that no quorum took.
func (p Position) Less(o Position) bool {
	if c := p.Epoch.Compare(o.Epoch); c != 0 {
		return c < 0
	}
	return p.Index < o.Index
}

// String returns a position as "7 of 12@89abcdef01234567".
func (p Position) String() string { return fmt.Sprintf("%d of %s", p.Index, p.Epoch) }

// at is the record's position.
func (r *Record) at() Position { return Position{r.Epoch, r.Index} }

// last is the last number of its UID, once it was taken in; false for a record of none.
func (r *Record) last() (uint64, bool) {
	switch r.Kind {
	case Take:
		return r.First + uint64(r.Count) - 1, true
	case Raise:
		return r.First, true
	case Began, Passed:
	}
	return 0, false
}

// until returns for how long the id of a Take is kept, in the time of its section.
func (r *Record) until(window int64) int64 {
	from := max(r.Time, r.Sent)
	return from + min(window, math.MaxInt64-from)
}

// after is the position of the record before.
func (r *Record) after() Position { return Position{r.Prev, r.Index - 1} }

// follows says whether the record is the next one after a position.
func (r *Record) follows(p Position) bool { return r.after() == p }

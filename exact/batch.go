package exact

import (
	"fmt"
	"math/bits"

	"github.com/seqsvr/seqsvr/seq"
)

// batch is a state and the records that are to follow it, as far as they were let pass. It
// decides which record may come next, for copies and for owners alike: an owner gathers only
// what every copy behind it takes in.
type batch struct {
	state   *State
	window  int64 // for how long ids are kept
	records []Record
	uids    numbers // of the last record of each UID
	ids     numbers // of the last record of each request
}

// admits returns why a record cannot be the next one. If again is true, it uses an id that was used before
// and has expired.
func (b *batch) admits(r *Record) (again bool, err error) {
	at, time := b.end()
	switch {
	case !r.follows(at):
		return false, fmt.Errorf("%w: record %v does not follow %v", ErrBadRecord, r.at(), at)
	case r.Epoch.Less(at.Epoch):
		return false, fmt.Errorf("%w: record %v of an epoch before %v", ErrBadRecord, r.at(), at.Epoch)
	case r.Time < time:
		return false, fmt.Errorf("%w: record %v has time %d, and the one before %d", ErrBadRecord, r.at(), r.Time, time)
	case len(r.ID) > MaxID:
		return false, fmt.Errorf("%w: record %v has an id of %d bytes, expected at most %d", ErrBadRecord, r.at(), len(r.ID), MaxID)
	}
	last := b.last(r.UID)
	switch r.Kind {
	case Take:
		if r.First != last+1 || r.Count == 0 || r.Count > seq.MaxCount || r.First+uint64(r.Count)-1 > uint64(seq.MaxSeq) {
			return false, fmt.Errorf("%w: record %v takes %d from %d, and the last is %d", ErrBadRecord, r.at(), r.Count, r.First, last)
		}
		if r.ID != "" {
			var until int64
			if until, again = b.used(request{r.UID, r.ID}, r.Time); again && until > r.Time {
				return false, fmt.Errorf("%w: record %v has an id that is still kept", ErrBadRecord, r.at())
			}
		}
	case Raise:
		if r.First <= last || r.First > uint64(seq.MaxSeq) {
			return false, fmt.Errorf("%w: record %v raises to %d, and the last is %d", ErrBadRecord, r.at(), r.First, last)
		}
	case Began, Passed:
	default:
		return false, fmt.Errorf("%w: record %v of kind %d", ErrBadRecord, r.at(), r.Kind)
	}
	return again, nil
}

// end returns the position and the time of the last record.
func (b *batch) end() (Position, int64) {
	if n := len(b.records); n > 0 {
		return b.records[n-1].at(), b.records[n-1].Time
	}
	return b.state.at, b.state.time
}

// add takes in the records that were let pass: one more than before.
func (b *batch) add(records []Record) {
	b.records = records
	r := &records[len(records)-1]
	if _, ok := r.last(); ok {
		*b.ofUID(r.UID) = int32(len(records))
	}
	if r.Kind == Take && r.ID != "" {
		*b.ofRequest(request{r.UID, r.ID}) = int32(len(records))
	}
}

func (b *batch) ofUID(uid seq.UID) *int32 {
	return b.uids.at(mix(uid), func(n int32) bool { return b.records[n-1].UID == uid })
}

func (b *batch) ofRequest(q request) *int32 {
	return b.ids.at(q.hash(), func(n int32) bool { return b.records[n-1].UID == q.uid && b.records[n-1].ID == q.id })
}

// last returns the last number of a UID.
func (b *batch) last(uid seq.UID) uint64 {
	if len(b.records) > 0 {
		if n := *b.ofUID(uid); n > 0 {
			last, _ := b.records[n-1].last()
			return last
		}
	}
	return b.state.Last(uid)
}

// used returns until when the latest use of a request's id is kept. It returns false if there is none that
// the state would still have at a time. An id may be used again once it has expired, also by a later record
// of the same batch.
func (b *batch) used(q request, time int64) (until int64, used bool) {
	if len(b.records) > 0 {
		if n := *b.ofRequest(q); n > 0 {
			return b.records[n-1].until(b.window), true
		}
	}
	if in, at := b.state.ids.find(q, time); in != nil {
		return in.got(at).until, true
	}
	return 0, false
}

// numbers are an index of a batch: numbers of records, from 1 on, by open addressing. Zero means an empty
// place. At most half are in use.
type numbers []int32

// newNumbers returns an index for up to that many records.
func newNumbers(records int) numbers { return make(numbers, 2*records) }

// at returns the place of what has a hash and is what is looked for, or else an empty place for it.
func (x numbers) at(hash uint64, is func(n int32) bool) *int32 {
	hi, _ := bits.Mul64(hash, uint64(len(x)))
	for i := int(hi); ; {
		if n := x[i]; n == 0 || is(n) {
			return &x[i]
		}
		if i++; i == len(x) {
			i = 0
		}
	}
}

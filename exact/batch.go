package exact

import (
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
)

// few is up to how many records are searched one by one, which is faster than to index them.
const few = 24

// batch is a state and the records that are to follow it, as far as they were let pass. It
// decides which record may come next, for copies and for owners alike: an owner gathers only
// what every copy behind it takes in.
type batch struct {
	state   *State
	window  int64 // for how long ids are kept
	records []Record
	lasts   map[seq.UID]uint64 // nil while they are few
	until   map[request]int64
}

// admits returns why a record cannot be the next one.
func (b *batch) admits(r *Record) error {
	at, time := b.end()
	switch {
	case !r.follows(at):
		return fmt.Errorf("%w: record %v does not follow %v", ErrBadRecord, r.at(), at)
	case r.Epoch.Less(at.Epoch):
		return fmt.Errorf("%w: record %v of an epoch before %v", ErrBadRecord, r.at(), at.Epoch)
	case r.Time < time:
		return fmt.Errorf("%w: record %v has time %d, and the one before %d", ErrBadRecord, r.at(), r.Time, time)
	case len(r.ID) > MaxID:
		return fmt.Errorf("%w: record %v has an id of %d bytes, expected at most %d", ErrBadRecord, r.at(), len(r.ID), MaxID)
	}
	last := b.last(r.UID)
	switch r.Kind {
	case Take:
		if r.First != last+1 || r.Count == 0 || r.Count > seq.MaxCount || r.First+uint64(r.Count)-1 > uint64(seq.MaxSeq) {
			return fmt.Errorf("%w: record %v takes %d from %d, and the last is %d", ErrBadRecord, r.at(), r.Count, r.First, last)
		}
		if r.ID != "" && b.keeps(request{r.UID, r.ID}, r.Time) {
			return fmt.Errorf("%w: record %v has an id that is still kept", ErrBadRecord, r.at())
		}
	case Raise:
		if r.First <= last || r.First > uint64(seq.MaxSeq) {
			return fmt.Errorf("%w: record %v raises to %d, and the last is %d", ErrBadRecord, r.at(), r.First, last)
		}
	case Began, Passed:
	default:
		return fmt.Errorf("%w: record %v of kind %d", ErrBadRecord, r.at(), r.Kind)
	}
	return nil
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
	switch {
	case b.lasts != nil:
		b.index(&records[len(records)-1])
	case len(records) > few:
		b.lasts, b.until = map[seq.UID]uint64{}, map[request]int64{}
		for i := range records {
			b.index(&records[i])
		}
	}
}

func (b *batch) index(r *Record) {
	if last, ok := r.last(); ok {
		b.lasts[r.UID] = last
	}
	if r.Kind == Take && r.ID != "" {
		b.until[request{r.UID, r.ID}] = r.until(b.window)
	}
}

// last returns the last number of a UID.
func (b *batch) last(uid seq.UID) uint64 {
	if b.lasts != nil {
		if last, ok := b.lasts[uid]; ok {
			return last
		}
		return b.state.Last(uid)
	}
	for i := len(b.records) - 1; i >= 0; i-- {
		if r := &b.records[i]; r.UID == uid {
			if last, ok := r.last(); ok {
				return last
			}
		}
	}
	return b.state.Last(uid)
}

// keeps reports whether what a request has got is still kept at a time. An id may be used again
// after that, also by a later record of the same batch.
func (b *batch) keeps(r request, time int64) bool {
	if until, ok := b.taken(r); ok {
		return until > time
	}
	got, ok := b.state.ids[r]
	return ok && got.until > time
}

// taken returns until when the records keep the id of a request, false if none has it.
func (b *batch) taken(q request) (until int64, ok bool) {
	if b.until != nil {
		until, ok = b.until[q]
		return until, ok
	}
	for i := len(b.records) - 1; i >= 0; i-- {
		if r := &b.records[i]; r.UID == q.uid && r.Kind == Take && r.ID == q.id {
			return r.until(b.window), true
		}
	}
	return 0, false
}

package exact

import (
	"fmt"
	"strings"

	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/seq"
)

// State results from the records of a section: the last number of each UID, and the numbers that the
// requests with an id got. The zero State results from no records.
type State struct {
	at   Position
	time int64
	// floor is the last number of every UID that last does not have: of a section that was
	// restored, whose records since the backup are lost.
	floor uint64
	last  counters.Table
	ids   ids
}

// Beginning returns the state of a section without records in an era that was restored: every UID
// goes on from floor, since an era before may have given it numbers up to there.
func Beginning(floor uint64) *State { return &State{floor: floor} }

// At returns the position of the last record.
func (s *State) At() Position { return s.at }

// Time returns the time of the last record, in milliseconds since 1970.
func (s *State) Time() int64 { return s.time }

// Last returns the last number of a UID. If the state does not know the UID, Last returns the floor: zero,
// or after a restore the number at which the UID begins.
func (s *State) Last(uid seq.UID) uint64 {
	if last, ok := s.last.Get(uint64(uid)); ok {
		return last
	}
	return s.floor
}

// knows reports whether the state has a UID.
func (s *State) knows(uid seq.UID) bool {
	_, ok := s.last.Get(uint64(uid))
	return ok
}

// UIDs returns the number of UIDs that the state has.
func (s *State) UIDs() int { return s.last.Len() }

// IDs returns the number of requests that are kept. Some may have expired.
func (s *State) IDs() int { return s.ids.count }

// Bytes returns the memory that the UIDs and ids take.
func (s *State) Bytes() int64 { return int64(s.last.Bytes() + s.ids.bytes) }

// MaxCopy bounds the bytes of a section's encoding. A copy travels in one message (storewire.MaxRequest)
// and in the time of one round. A larger copy could not be taken over, brought to a new store or backed up.
const MaxCopy = 16 << 20

// The largest sizes of the parts of the encoding, in bytes.
const (
	uidText  = 10 + 8 // a varint of 64 bits and one of 53
	idText   = 10 + 1 + MaxID + 8 + 10 + 10 + 5
	headText = 100 // all else
)

// copyBytes bounds the bytes of the encoding, whatever the UIDs, ids and numbers are.
func (s *State) copyBytes() int64 {
	return headText + uidText*int64(s.UIDs()) + idText*int64(s.ids.count)
}

// Page returns up to most UIDs, beginning with from, in rising order. next is the least UID after them, or
// 0.
func (s *State) Page(from seq.UID, most int) (uids []seq.UID, next seq.UID) {
	// Each block but the first has one of them.
	for _, uid := range s.last.Page(uint64(from), most+2).UIDs {
		if len(uids) == most {
			return uids, seq.UID(uid)
		}
		uids = append(uids, seq.UID(uid))
	}
	return uids, 0
}

// Clone copies the state.
func (s *State) Clone() *State {
	return &State{at: s.at, time: s.time, floor: s.floor, last: *s.last.Clone(), ids: s.ids.clone()}
}

// Lifted returns a copy of the state in which lift has raised every last number, and the floor. A section
// begins with it after a restore. Its position is one further on, under an epoch of no session. It keeps
// all numbers and ids of the state. Later numbers and ids are lost, so X1 and X2 do not hold for them. No
// number is assigned twice as long as lift passes all numbers that were assigned.
func (s *State) Lifted(e seq.Epoch, lift func(last uint64) (uint64, error)) (*State, error) {
	out := s.Clone()
	out.at = Position{Epoch: e, Index: s.at.Index + 1}
	var err error
	if out.floor, err = lift(s.floor); err != nil {
		return nil, err
	}
	for uid, last := range s.last.All() {
		if last, err = lift(last); err != nil {
			return nil, fmt.Errorf("uid %d: %w", uid, err)
		}
		out.last.Raise(uid, last)
	}
	return out, nil
}

// check says why records cannot follow the state: nil if they can. Nothing is changed. If again is true, a
// record uses an id that was used before and has expired.
func (s *State) check(records []Record, window int64) (again []bool, err error) {
	n := len(records)
	before := batch{state: s, window: window, uids: newNumbers(n), ids: newNumbers(n)}
	again = make([]bool, n)
	for i := range records {
		if again[i], err = before.admits(&records[i]); err != nil {
			return nil, err
		}
		before.add(records[:i+1])
	}
	return again, nil
}

// apply takes in a record that check let pass, with what it said of its id.
func (s *State) apply(r *Record, again bool, window int64) {
	s.at, s.time = r.at(), r.Time
	s.ids.pass(s.time)
	if last, ok := r.last(); ok {
		s.last.Raise(uint64(r.UID), last)
	}
	if r.Kind == Take && r.ID != "" {
		if again {
			s.ids.forget(request{r.UID, r.ID})
		}
		s.ids.add(r, r.until(window), window)
	}
}

// Describe returns the state in full, in one order, for people and for comparing.
func (s *State) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %v, time %d", s.at, s.time)
	if s.floor > 0 {
		fmt.Fprintf(&b, "; others: %d", s.floor)
	}
	for uid, last := range s.last.All() {
		fmt.Fprintf(&b, "; %d: %d", uid, last)
	}
	for i := range s.ids.buckets {
		for in := NewReader(s.ids.buckets[i].texts); in.Left() > 0; {
			r, until := in.request()
			fmt.Fprintf(&b, "; %d %q: %d from %d, record %d, until %d", r.UID, r.ID, r.Count, r.First, r.Index, until)
		}
	}
	return b.String()
}

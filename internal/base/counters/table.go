package counters

import (
	"iter"
	"slices"
)

// Table is the counters of one section. It has no lock; its owner guards it.
// The zero Table is an empty one at base 0.
//
// The fields that a take of a known UID needs come first: 56 bytes, which its owner
// may put into one cache line.
type Table struct {
	high  uint64  // max(base, all v in the table)
	slots index   // only Fold deletes
	pages []*page // the counters of blocks in page form

	words []uint64 // the counters of packed blocks
	holes int      // words that belong to no block; holes <= len(words)

	floor  uint64 // floor < v for every v in the table
	base   uint64 // where every UID without a counter stands; floor <= base
	uids   int    // number of UIDs in the table
	blocks int    // slots in use; 5*blocks <= 4*len(slots)
}

// New returns an empty table in which every UID stands at base.
func New(base uint64) *Table { return &Table{floor: base, base: base, high: base} }

// Take hands out the n numbers above the current value of uid, from first to last, both inclusive. Then
// last is the current value. If n is 0 or last would be above ceiling, Take returns zeros and false, and
// changes nothing. The caller's time now, in Unix seconds, is kept for LastTaken. Zero leaves the time as
// it is.
func (t *Table) Take(uid, n, ceiling uint64, now uint32) (first, last uint64, ok bool) {
	return t.TakeAt(t.Find(uid), uid, n, ceiling, now)
}

// TakeAt is Take for a UID that was found before. The Ref must still be valid.
func (t *Table) TakeAt(at Ref, uid, n, ceiling uint64, now uint32) (first, last uint64, ok bool) {
	var cur uint64
	if at.counter != nil {
		cur = *at.counter
	} else {
		cur = t.base
	}
	if n == 0 || cur > ceiling || n > ceiling-cur {
		return 0, 0, false
	}
	last = cur + n
	if at.counter != nil {
		*at.counter = last
	} else {
		at.slot = t.add(at.slot, uid, last)
	}
	at.slot.last = max(at.slot.last, now)
	t.high = max(t.high, last)
	return cur + 1, last, true
}

// Get returns the current value of uid. If exact, uid is in the table, and value is the last number that
// was handed out or raised to. Otherwise value is the base, an upper bound of the numbers handed out
// before.
func (t *Table) Get(uid uint64) (value uint64, exact bool) {
	if c := t.counter(t.slots.find(uid>>blockBits), uid); c != nil {
		return *c, true
	}
	return t.base, false
}

// Raise lifts uid to atLeast if it stands lower, and returns its value. It never lowers a UID. It leaves a
// UID at atLeast or above as it is, in the table or not. Raise may be repeated, and does not count as a
// take.
func (t *Table) Raise(uid, atLeast uint64) (value uint64) {
	s := t.slots.find(uid >> blockBits)
	c := t.counter(s, uid)
	switch {
	case c != nil && *c >= atLeast:
		return *c
	case c != nil:
		*c = atLeast
	case atLeast <= t.base:
		return t.base
	default:
		t.add(s, uid, atLeast)
	}
	t.high = max(t.high, atLeast)
	return atLeast
}

// Rebase forgets all counters and times, and sets every UID to base. If base is lower than before, the
// caller must know that this is safe.
func (t *Table) Rebase(base uint64) {
	*t = *New(base)
}

// Base returns the value of every UID that is not in the table.
func (t *Table) Base() uint64 { return t.base }

// Len returns the number of UIDs in the table.
func (t *Table) Len() int { return t.uids }

// High returns the largest value of any UID; it is never below Base.
func (t *Table) High() uint64 { return t.high }

// LastTaken returns the time, in Unix seconds, of the latest take by uid or another UID of its block of 64.
// It is an upper bound of uid's own last take. If uid is not in the table or no time is known, ok is false.
func (t *Table) LastTaken(uid uint64) (at uint32, ok bool) {
	s := t.slots.find(uid >> blockBits)
	if t.counter(s, uid) == nil || s.last == 0 {
		return 0, false
	}
	return s.last, true
}

// Touch records a take of uid at the given time (Unix seconds) without taking. It ignores a UID that is not
// in the table, and a time before the known time. A receiver that rebuilds a table from pieces sets the
// values with Raise and the times with Touch.
func (t *Table) Touch(uid uint64, at uint32) {
	s := t.slots.find(uid >> blockBits)
	if t.counter(s, uid) != nil {
		s.last = max(s.last, at)
	}
}

// All yields every UID of the table with its value, by rising UID. The table
// must not be changed before the iteration has ended. It sorts the blocks
// first, at the cost of 8 bytes a block while it runs.
func (t *Table) All() iter.Seq2[uint64, uint64] {
	return func(yield func(uid, value uint64) bool) {
		for _, i := range t.slots.order(t.blocks) {
			if !t.each(&t.slots[i], yield) {
				return
			}
		}
	}
}

// Clone returns a copy of the table, without what it has unused.
func (t *Table) Clone() *Table {
	c := *t
	c.slots, c.words, c.pages = slices.Clone(t.slots), slices.Clone(t.words), make([]*page, len(t.pages))
	for i, p := range t.pages {
		if p != nil { // else Fold dropped it
			one := *p
			c.pages[i] = &one
		}
	}
	return &c
}

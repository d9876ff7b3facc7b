package counters

import (
	"math"
	"slices"
	"unsafe"
)

// Folded tells what a Fold did.
type Folded struct {
	Blocks int    // dropped
	Least  uint64 // the least highest counter of a cold block that was spared; math.MaxUint64: none was
	Next   int    // where to go on; -1: the whole table was looked at
}

// Fold drops, of the next slots slots from the from-th on, each block of 64 UIDs that is
// cold: nothing was taken from it at before (Unix seconds) or later, as far as is known. A
// block with a counter above highest is spared. The base rises to the highest counter
// that is dropped, so that the next number of a UID without a counter is above all that it
// ever had: it skips some, and repeats none. All other counters stay as they are.
//
// The table holds what it frees until Shrink. What is added between two calls may be missed.
func (t *Table) Fold(from, slots int, before uint32, highest uint64) Folded {
	f := Folded{Least: math.MaxUint64, Next: -1}
	i := from
	for ; slots > 0 && i < len(t.slots); slots-- {
		s := &t.slots[i]
		if s.where == 0 || s.last >= before {
			i++
			continue
		}
		high := t.highest(s)
		if high > highest {
			f.Least = min(f.Least, high)
			i++
			continue
		}
		t.base = max(t.base, high)
		t.drop(i) // another block may stand there now
		f.Blocks++
	}
	if t.blocks == 0 {
		t.Rebase(t.base)
	}
	if i < len(t.slots) {
		f.Next = i
	}
	return f
}

// highest is the largest counter of a block.
func (t *Table) highest(s *slot) (high uint64) {
	t.each(s, func(_, value uint64) bool {
		high = max(high, value)
		return true
	})
	return high
}

// drop takes the block in slot i out.
func (t *Table) drop(i int) {
	s := &t.slots[i]
	n := s.len()
	switch s.form() {
	case packed:
		t.holes += room(n)
	case paged:
		t.pages[s.pos()] = nil
	}
	t.uids -= n
	t.blocks--
	t.slots.drop(i)
}

// Shrink gives back the memory that Fold has left unused, if that is an eighth or more. It
// copies what is left, as the table's growth does.
func (t *Table) Shrink() {
	if n := t.blocks + t.blocks/2 + 2; n < len(t.slots)-len(t.slots)/8 {
		t.slots = t.slots.resized(n)
	}
	if 8*t.holes > len(t.words) {
		t.compact(0)
	}
	if slices.Contains(t.pages, nil) {
		t.renumber()
	}
}

// renumber moves the pages up to where others were dropped.
func (t *Table) renumber() {
	var pages []*page
	for i := range t.slots {
		if s := &t.slots[i]; s.form() == paged {
			pages = append(pages, t.pages[s.pos()])
			s.where = paged | uint32(len(pages)-1)
		}
	}
	t.pages = slices.Clip(pages)
}

// Bytes is the memory that the counters take, beside the Table itself and what the
// runtime's sizes of allocations add.
func (t *Table) Bytes() int {
	return cap(t.slots)*int(unsafe.Sizeof(slot{})) + cap(t.words)*8 +
		cap(t.pages)*int(unsafe.Sizeof(t)) + len(t.pages)*int(unsafe.Sizeof(page{}))
}

package counters

import (
	"math"
	"slices"
	"unsafe"
)

// Folded is the result of a Fold.
type Folded struct {
	Blocks int    // dropped
	Least  uint64 // the least highest counter of the cold blocks that were spared; math.MaxUint64 if none was
	Next   int    // the slot at which to go on; -1 at the end of the table
}

// Fold drops cold blocks of 64 UIDs. It looks at the given number of slots, beginning at from. A block is
// cold if nothing is known to have been taken from it since before (Unix seconds). Fold spares a block with
// a counter above highest. It raises the base to the highest counter that it drops. So the next number of a
// dropped UID is above all its earlier numbers: it skips some, and repeats none. All other counters stay.
//
// The table keeps the freed memory until Shrink. Fold may miss UIDs that are added between two calls.
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

// highest returns the largest counter of a block.
func (t *Table) highest(s *slot) (high uint64) {
	t.each(s, func(_, value uint64) bool {
		high = max(high, value)
		return true
	})
	return high
}

// drop removes the block in slot i.
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

// Shrink frees the memory that Fold has left unused, if it is an eighth or more. It copies the rest, like
// the growth of the table.
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

// renumber moves pages into the places of dropped pages.
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

// Bytes returns the memory of the counters, without the Table itself and the rounding of the runtime's
// allocations.
func (t *Table) Bytes() int {
	return cap(t.slots)*int(unsafe.Sizeof(slot{})) + cap(t.words)*8 +
		cap(t.pages)*int(unsafe.Sizeof(t)) + len(t.pages)*int(unsafe.Sizeof(page{}))
}

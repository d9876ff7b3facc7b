package counters

import "slices"

// Page holds the counters of some blocks, by rising UID.
type Page struct {
	UIDs, Values []uint64
	Next         uint64 // the least UID that the next page may have; 0 after the last page
}

// Page reads the counters of at most the given number of blocks, beginning with the block of a UID. It
// looks at every slot, and allocates memory only for its result.
func (t *Table) Page(from uint64, blocks int) (p Page) {
	least := make([]uint64, 0, min(blocks, len(t.slots))+1) // blocks by rising number, and one more
	for i := range t.slots {
		s := &t.slots[i]
		if s.where == 0 || s.block < from>>blockBits || len(least) > blocks && s.block > least[blocks] {
			continue
		}
		at, _ := slices.BinarySearch(least, s.block)
		least = slices.Insert(least[:min(len(least), blocks)], at, s.block)
	}
	if len(least) > blocks {
		p.Next = least[blocks] << blockBits
		least = least[:blocks]
	}
	for _, b := range least {
		t.each(t.slots.find(b), func(uid, value uint64) bool {
			if uid >= from {
				p.UIDs, p.Values = append(p.UIDs, uid), append(p.Values, value)
			}
			return true
		})
	}
	return p
}

// Lift raises every UID, with a counter or without, to at least base.
func (t *Table) Lift(base uint64) {
	if base >= t.high {
		t.Rebase(base)
		return
	}
	for i := range t.slots {
		s := &t.slots[i]
		if s.where == 0 {
			continue
		}
		t.each(s, func(uid, value uint64) bool {
			if value < base {
				*t.counter(s, uid) = base
			}
			return true
		})
	}
	t.base = max(t.base, base)
}

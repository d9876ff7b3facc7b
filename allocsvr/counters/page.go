package counters

import "slices"

// Page is the counters of some blocks, by rising UID.
type Page struct {
	UIDs, Values []uint64
	Next         uint64 // the least UID that may stand on the next page; 0: there is none
}

// Page reads the counters from the block of a UID on, of at most so many blocks. It looks at
// every slot, and needs memory for what it gives alone.
func (t *Table) Page(from uint64, blocks int) (p Page) {
	least := make([]uint64, 0, blocks+1) // blocks by rising number, and one more
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

// Lift raises every UID to at least base, with a counter or without.
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

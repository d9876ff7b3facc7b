package counters

// A Table is larger than a processor's caches, so a take of one UID waits for memory,
// step by step: the slot of the block, then the page or the packed words, then the
// counter. A take for many UIDs, in one table or in many, waits once for all of
// them instead: Near for each, then Find for each, then TakeAt for each. Every one of
// these loops leaves the processor free to go on to the next UID while the memory of
// the one before is still on its way.

// Ref is where the counter of a UID stands. It is good until a UID is added to the table
// or dropped from it.
type Ref struct {
	slot    *slot   // of the block; nil if the table does not have it
	counter *uint64 // nil if the UID is not in the table
}

// Known reports whether the UID is in the table. A take of a UID that is not in the table adds it. After
// that no Ref of the table is valid any more.
func (s Ref) Known() bool { return s.counter != nil }

// Prefetch has the processor fetch what Find will need. The result says nothing; it is to be
// used for something, so that the compiler does not leave the fetching out.
func (t *Table) Prefetch(uid uint64) uint64 {
	if len(t.slots) == 0 {
		return 0
	}
	return t.slots[t.slots.home(uid>>blockBits)].block
}

// Find looks for the counter of uid.
func (t *Table) Find(uid uint64) Ref {
	s := t.slots.find(uid >> blockBits)
	return Ref{slot: s, counter: t.counter(s, uid)}
}

// Fetch has the processor fetch the counter. For its result see Near.
func (s Ref) Fetch() uint64 {
	if s.counter == nil {
		return 0
	}
	return *s.counter
}

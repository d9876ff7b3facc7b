// Package counters holds the live counters of one section: for each UID the
// last number handed out, in as few bytes as it can be done.
//
// What it guarantees:
//
//   - A UID that is not in a Table stands at the table's base. A UID enters the
//     table with its first Take or with a Raise above base, and leaves it only
//     by Fold or Rebase. Fold raises the base to at least every counter that it
//     drops, and leaves the others alone, so some may stand below the base. No
//     UID is ever lowered except by Rebase.
//   - Arithmetic never wraps: a Take that would pass its ceiling is refused and
//     changes nothing. All of uint64 is allowed for UIDs and values.
//   - All and AppendBinary give the counters by rising UID, so two tables of
//     equal content give equal bytes. Decode accepts only what AppendBinary
//     writes, never panics, and allocates in proportion to its input.
//
// What it knows nothing of: epochs, leases, clocks and stores. Whether a table
// may be used at all, and which base and ceiling are safe, is its owner's
// affair. A Table has no lock: the owner's lock guards every method, including
// those that only read.
//
// # Memory
//
// UIDs are grouped in blocks of 64 neighbours (uid>>6). A block is one 24-byte
// slot of an open-addressed hash table, in one of three forms:
//
//	single   1 UID          the counter stands in the slot itself
//	packed   2 to 32 UIDs   bitmap in the slot, counters side by side in one shared slice
//	page     33 to 64 UIDs  bitmap in the slot, counters in an array of 64
//
// That is about 9 bytes a UID where UIDs are dense, 13 to 30 with 10 to 2 UIDs
// a block, and about 35 where every UID has a block of its own. The table grows
// by a quarter at a time, which bounds unused room; a Take that meets a known
// UID allocates nothing, one that brings a new UID may copy the slots.
package counters

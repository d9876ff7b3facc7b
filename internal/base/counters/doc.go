// Package counters holds the live counters of one section. A counter is the last number that a UID got, in
// few bytes.
//
// It guarantees:
//
//   - A UID that is not in a Table stands at the table's base. A UID enters the
//     table with its first Take or with a Raise above base, and leaves it only
//     by Fold or Rebase. Fold raises the base to at least every counter that it
//     drops. It leaves the other counters alone, so some may stand below the base.
//     Only Rebase lowers a UID.
//   - Arithmetic never wraps. A Take that would pass its ceiling is refused and
//     changes nothing. Every uint64 is a valid UID and a valid value.
//   - All and AppendBinary give the counters by rising UID, so two tables of
//     equal content give equal bytes. Decode accepts only the output of
//     AppendBinary, never panics, and allocates in proportion to its input.
//
// It knows nothing of epochs, leases, clocks and stores. The owner of a Table decides whether the
// table may be used at all, and which base and ceiling are safe. A Table has no lock. The owner's lock
// guards every method, including methods that only read.
//
// # Memory
//
// UIDs are grouped in blocks of 64 neighbours (uid>>6). A block is one 24-byte slot of an open-addressed
// hash table, in one of three forms:
//
//	single   1 UID          the counter stands in the slot itself
//	packed   2 to 32 UIDs   bitmap in the slot, counters side by side in one shared slice
//	page     33 to 64 UIDs  bitmap in the slot, counters in an array of 64
//
// A UID takes about 9 bytes where UIDs are dense, 13 to 30 with 10 to 2 UIDs a block, and about 35 where
// every UID has its own block. The table grows by a quarter at a time, which bounds unused memory. A Take
// of a known UID allocates nothing. A Take of a new UID may copy the slots.
package counters

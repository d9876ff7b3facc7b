// Package snowflake makes, takes apart and prints 63-bit time-ordered IDs of any layout: fields of time,
// datacenter, worker and sequence in any order.
//
// It guarantees that one Generator never hands out an ID twice. Two generators of one layout never share an
// ID if their workers or datacenters differ, or if the later one's floor is at or above every confirmed
// tick of the earlier one's window. No clock takes part in that: a clock only chooses among the ticks of
// the window. A wrong clock leads to refusals or to odd times inside IDs, never to a repeated ID.
//
// The window (floor, confirmed] is the caller's: it stands for a high-water mark of ticks that was saved
// durably before use. Extend may be called only after the new mark was saved. A save that timed out did not
// confirm anything.
//
// What belongs here: layouts as data, the rule of which layout may follow which, the lock-free generator,
// and text forms of IDs. What does not: leases of worker ids, storing the window, goroutines of its own (a
// timer that runs for a millisecond aside), and the network. The package uses the standard library only and
// is usable on its own.
package snowflake

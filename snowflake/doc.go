// Package snowflake makes, takes apart and prints 63-bit time-ordered IDs of
// any layout: fields of time, datacenter, worker and sequence in any order.
//
// What it guarantees: one Generator never hands out an ID twice, and two
// generators of one layout never share an ID when either their worker (or
// datacenter) differs or the later one's floor is at or above every tick the
// earlier one's window was confirmed to. No clock takes part in that: a clock
// only chooses among the ticks of the window, and a lying one leads to refusal
// or to odd times inside IDs, never to a repeated ID.
//
// The window (floor, confirmed] is the caller's: it stands for a high-water
// mark of ticks that was saved durably before use. Extend may be called only
// after the new mark was saved; a save that timed out did not confirm anything.
//
// What belongs here: layouts as data, the rule of which layout may follow
// which, the lock-free generator, and text forms of IDs. What does not: leases
// of worker ids, storing the window, goroutines of its own (a timer that runs for a millisecond aside),
// and the network. The package
// uses the standard library only and is usable on its own.
package snowflake

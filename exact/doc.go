// Package exact is the log of one section of an exact space: the records that assign numbers and the state
// that results from them. It has the rules by which a store takes records in (Copy) and by which the
// section's owner makes them (Owner). It has no clock, no I/O and no goroutine.
//
// It promises the following if the owner has the highest epoch that W stores promised, and answers as Owner
// says:
//
//	X1  the numbers of a UID are 1..n, except for numbers that a Raise skipped
//	X2  a request with an id gets the same numbers however often it is repeated, until a
//	    window after it was first sent; later it gets none
//
// A section is a small replicated log with one writer, in the way of Raft (Ongaro, Ousterhout 2014) and
// Viewstamped Replication (Liskov, Cowling 2012). Whole copies are compared by epoch and index, and never
// merged. A merge UID by UID could take the state of one UID from a copy that no quorum had.
//
// What belongs here: everything that decides. What does not: files, messages, promises and leases (packages
// acceptor and quorum).
package exact

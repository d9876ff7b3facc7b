// Package exact is the log of one section of an exact space: the records that assign numbers,
// the state that they come to, the rules by which a store takes records in (Copy) and those
// by which the section's owner makes them (Owner). It has no clock, no I/O and no goroutine.
//
// It promises, where the owner has the highest epoch that W stores promised, and answers as
// Owner says:
//
//	X1  the numbers of a UID are 1..n, but for what a Raise skipped
//	X2  a request with an id gets the same numbers however often it is repeated, until a
//	    window after it was first sent; later it gets none
//
// A section is a small replicated log with one writer, in the way of Raft (Ongaro, Ousterhout
// 2014) and Viewstamped Replication (Liskov, Cowling 2012): whole copies are compared by epoch
// and index, and never merged. What the numbers of one UID come to may be taken from a copy
// that no quorum had, if copies are merged UID by UID.
//
// What belongs here: everything that decides. What does not: files, messages, promises and
// leases (packages acceptor and quorum).
package exact

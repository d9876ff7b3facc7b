// Package acceptor is the pure core of one store: the rules of the fenced registers
// and the table of leases. It has no clock, no I/O and no goroutine; the time comes in
// as an argument, on a monotonic clock whose origin does not matter. It is not safe for
// concurrent use: the caller's mutex guards it.
//
// It guarantees, for a caller that keeps the duties below:
//
//	I1  promised never decreases
//	I2  max never decreases
//	I3  accepted <= promised
//	I7  at most one session holds a valid lease on a register, and it keeps all others out, except
//	    a preempting one out of a section of a strict or exact space
//
// I1 to I3 are asserted at every change; a breach is ErrInvariant and must end the
// process.
//
// # Duties of the caller
//
// Prepare and Step change the state in memory ahead of the disk, so that the requests
// of one group see each other. The caller commits Changes in one transaction, then
// calls Committed, and only then answers any request of the group, a refused one
// included. If the commit fails the process must exit: what memory shows is then no
// longer known to be on disk. A crash before the commit leaves the registers as they
// were before the group, and no answer said otherwise.
//
// Read and Renew may come between. They must not queue behind an fsync, and they are
// answered without one, so they may only rest on what is already on disk:
//
//   - Read shows the committed state. Showing what the group is about to write would be
//     a dirty read: a crash takes it back. Its verdicts, mere advice, look at memory.
//   - Renew attaches a register only if the epoch is promised on disk and in memory.
//     Suppose it went by memory alone, and the store crashed before the commit: it would
//     come back with the epoch before, and in its grace let that epoch's session in,
//     while the newer session counts this store among the W that keep others out. Two
//     sessions could serve at once. By memory is needed too: an epoch about to be
//     outrun must not be leased.
//   - Removing an attachment early is always safe, because it only ends a lease. The next
//     renewal tells the session, and the same rules admitted the Prepare that removed
//     the attachment.
//
// # Duties of a session
//
// A store cannot see what a session believes, so an honest session
//
//   - stops using a register before it prepares a higher round of it: the promise ends
//     the lease under its own older epoch, too;
//   - never attaches, renews or steps an epoch again that it has released or dropped;
//   - takes nothing as attached here once its own lease here has ended by its own clock,
//     or once BootCount differs from the reply before, and attaches all again. Reset
//     finds most such differences by the count alone, but not all;
//   - takes a Refused attachment for "not leased here", not for a loss: the promise may
//     not have got here, or not yet to disk.
//
// What belongs here: everything that decides. What does not: files, sockets, who is a
// member, whether the store votes.
package acceptor

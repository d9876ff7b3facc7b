// Package segment hands out the numbers of named tags, as Leaf-segment does: each
// tag is a fenced register of its own, created when it is first asked for, owned
// under a lease by the node that should own the tag's section.
//
// It guarantees that a number of a tag is handed out at most once, ever: only under
// an epoch that this session owns, above everything that an earlier epoch confirmed,
// and below what W stores have on disk; and, as long as leases hold what they
// promise, that a later call gets larger numbers. While a tag is in use the next
// segment is confirmed before the current one ends, so no request waits for a disk
// unless callers use numbers up faster than the stores write.
//
// A tag that moves goes on above everything that was confirmed: the rest of the
// confirmed segments is skipped, two segments at most in ordinary use. A release in
// order skips no more and no less than a crash; it only spares the successor the
// wait for the lease.
//
// What belongs here: the catalogue of tags, owning a tag, its double buffer, the
// tuning of its step, the gRPC service. What does not: who should own a section
// (Config.Owner), leases, routing.
package segment

// Package segment hands out the numbers of named tags, like Leaf-segment. Each tag is a fenced register of
// its own. It is created when it is first requested, and owned under a lease by the node that should own
// the tag's section.
//
// It guarantees that a number of a tag is handed out at most once, ever. A number is handed out only under
// an epoch that this session owns. It is above everything that an earlier epoch confirmed, and below the
// maximum that W stores have on disk. As long as leases hold what they promise, a later call gets larger
// numbers. While a tag is in use, the next segment is confirmed before the current one ends. So no request
// waits for a disk, unless callers use numbers up faster than the stores write.
//
// A tag that moves goes on above everything that was confirmed. The rest of the confirmed segments is
// skipped, in ordinary use at most two segments. A release in order skips no more and no less than a crash.
// It only spares the successor the wait for the lease.
//
// What belongs here: the catalogue of tags, owning a tag, its double buffer, the tuning of its step, the
// gRPC service. What does not: the choice of a section's owner (Config.Owner), leases, routing.
package segment

// Package handover holds the counters of sections at the moment of their seal. A node hands them to the
// next owner, or parks them on its own disk, so that the section goes on without a gap.
//
// It guarantees that counters are used only if they were sealed under the epoch that was accepted last. If
// a peer sent them, their owner's release must also have left their digest at the stores. Keeping counters
// for too long is harmless.
//
// What belongs here: sealed counters, which of them this node keeps, the file of parked ones. What does
// not: sealing, offering and acquiring (package allocsvr), the counters themselves (package counters).
package handover

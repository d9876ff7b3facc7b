// Package handover is the counters of sections at the moment of their seal: what a node
// hands to the next owner, or parks on its own disk, so that the section goes on without a
// gap.
//
// It guarantees that counters are used only if they were sealed under the epoch that was
// accepted last and, if a peer sent them, if their owner's release left their digest at the
// stores. Keeping counters for too long is harmless.
//
// What belongs here: sealed counters, which of them this node keeps, the file of parked
// ones. What does not: sealing, offering and acquiring (package allocsvr), the counters
// themselves (package counters).
package handover

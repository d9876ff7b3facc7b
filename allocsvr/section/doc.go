// Package section is the table of sections that a node serves numbers from.
//
// It owns the counters of each section in memory, the ceiling that W stores have
// confirmed for it, and the moment until which its lease holds. It guarantees that a
// number is handed out only from a section that is owned under a valid lease, above
// everything that was handed out before, and not above the confirmed ceiling (I5 and I6
// of protocol.md). It asks for the next ceiling ahead of need.
//
// What belongs here: taking, reading and raising numbers (take.go, pass.go, raise.go), in exact
// spaces from logs (idempotent.go), which sections there are (layout.go), the states of each (section.go),
// how far a step goes (pace.go), the memory that counters may take (memory.go). What does not:
// which sections a node should own, and how it comes to own them (package owner); messages of
// callers (package api).
package section

// Package setctl is `seqctl set`: adding Sets, showing which has which sections, and moving
// sections between them.
//
// What belongs here: flags, finding the root Set, and telling how far a move is. What does not:
// the steps of a move (internal/ops/setadmin) and their rules (sets).
package setctl

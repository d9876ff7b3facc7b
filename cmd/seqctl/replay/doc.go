// Package replay is `seqctl replay`: it takes a sequence from the recipient's UID
// for every message of a log, and checks what it got.
//
// It guarantees that the messages of one recipient are sent one after the other in
// the order of the log, so that any number that is not above the one before it is
// the service's doing; that lines of --out stand in the order of the log; and that an
// unreadable line ends the replay with its number, after everything before it was
// answered and written.
package replay

// Package journal keeps the copies of the sections of exact spaces on a store's disk: a log of
// batches in two files that take turns, and the copies in memory.
//
// It guarantees that
//
//   - what Write was given is there after any crash once it has returned, one fdatasync a call;
//   - a batch that a crash cut off is left out as a whole, and nothing but the last batch ever
//     is: a damaged one with others behind it is ErrDamaged, and the store does not start;
//   - the log does not grow without end: with each batch some copies are written whole, so that
//     by the middle of a file all of them are in it, and the other file is free to be used again.
//
// The checksum of a batch covers its number and the number of the file's turn, because a file
// that is used again still holds whole batches of its turn before last.
//
// A group commit writes registers to the database first, then all records here by one fdatasync,
// and then answers. The other order could leave a record of an epoch that was never promised.
// The database knows the journal's id and position: a journal that is missing or older, or has
// records above a promise, is refused by name. A start fsyncs the file before it reads it.
//
// What belongs here: bytes and files. What does not: which records a copy takes (package
// exact), promises (package acceptor).
package journal

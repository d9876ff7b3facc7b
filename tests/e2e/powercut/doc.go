// Package powercut is a disk that can lose power: a FUSE file system over one flat
// directory that keeps in memory what was written, and at a cut forgets what was not
// fsynced, or leaves a random part of it. It can also fail an fsync, be full, and be slow.
//
// It guarantees that bytes, lengths and names that an fsync (of the file; of the
// directory, for names) confirmed survive every cut, and that after Forget nothing else
// does. Between cuts it is an ordinary file system: what was written is read, also
// through a shared mapping. Nothing reaches the directory below; it gives the content to
// begin with, and is there again, as it was, after Close.
//
// What belongs here: files, names and faults of one directory, without links, rights and
// subdirectories. Who is killed at a cut, and what must hold afterwards, belongs to the
// callers; command forgetfs serves one directory to a program that speaks its lines.
package powercut

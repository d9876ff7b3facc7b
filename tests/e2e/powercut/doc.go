// Package powercut is a disk that can lose power. It is a FUSE file system over one flat directory that
// keeps written bytes in memory. At a cut it forgets what was not fsynced, or leaves a random part of it.
// It can also fail an fsync, be full, and be slow.
//
// It guarantees that bytes, lengths and names survive every cut once an fsync (of the file; of the
// directory, for names) has confirmed them. After Forget nothing else survives. Between cuts it is an
// ordinary file system: a read returns what was written, also through a shared mapping. Nothing reaches the
// directory below; it gives the content to begin with, and is there again, as it was, after Close.
//
// What belongs here: files, names and faults of one directory, without links, rights and subdirectories.
// What does not: the processes that are killed at a cut, and the checks afterwards, which belong to the
// callers. Command forgetfs serves one directory to a program that speaks its lines.
package powercut

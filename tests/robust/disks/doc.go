// Package disks runs a single real StoreSvr on disks that fail, and asks it as an
// AllocSvr would: killed at each of its fdatasyncs (strace), with EIO from one, with slow
// ones, and on a file system that is full (tmpfs). What was acknowledged must be there
// after the restart, what was never asked for must not.
//
// The tests skip where strace or the right to mount is missing. Whole clusters under
// such faults are in tests/robust/rounds; a disk that loses power is tests/e2e/powercut.
package disks

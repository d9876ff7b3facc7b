// Package disks runs a single real StoreSvr on disks that fail, and asks it as an AllocSvr would. The store
// is killed at each of its fdatasyncs (strace), gets EIO from one, has slow ones, and runs on a full file
// system (tmpfs). After the restart it must have what it acknowledged, and must not have what was never
// asked for.
//
// The tests skip where strace or the right to mount is missing. Whole clusters under such faults are in
// tests/robust/rounds; a disk that loses power is tests/e2e/powercut.
package disks

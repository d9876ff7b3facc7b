// Package integration drives everything from callers to disks in one process, so that the
// race detector sees all of it: SDK, router, AllocSvr and StoreSvr over loopback, with
// faults in the middle, and the history of all calls checked at the end.
package integration

// Package registers is the conformance suite for what stands behind
// ownership.Registers: the fenced registers on N stores. StoreSvr passes it, and so
// must every engine that is to stand in its place.
//
// An engine comes in as quorum.Store, one value a replica. One that replicates by
// itself, such as etcd, is a single store, with N = R = W = 1; what the suite kills
// and starts again is then the adapter.
//
// The suite guarantees that an engine which passes keeps
//
//	I1  promised never decreases, over any restart
//	I2  max never decreases
//	I3  accepted <= promised
//	I7  at most one session has a valid lease on a register
//
// and says what it says in the words of quorum.Verdict and of the errors of seq, so
// that everything above it works unchanged. It does not measure speed and does not
// cut the power: that fsync does what it says is for the drills to find out.
//
// What belongs here: one row for each promise that the interface makes. Rows must
// hold for every engine; what only StoreSvr does is tested beside it.
package registers

// Package sim simulates whole clusters of the code that ships: AllocSvr nodes with all their goroutines,
// StoreSvr replicas with their acceptors and writer loops, or the code between an AllocSvr and an etcd, and
// the wire messages between them. The network, the disks and the clocks are the simulator's own. The time
// is the virtual time of testing/synctest.
//
// A run is drawn from a seed: the size of the cluster, its timing, and a schedule of faults as plain data.
// Many faults are aimed at points of the protocol (Fault). During the run, the invariants I1 to I7 and I11
// of docs/protocol.md are checked against disks, messages and nodes at every answer. Callers keep a history
// that internal/lab/history judges. Once the faults are over, every counter has to move again.
//
// Run must be called in a bubble. Natively, the scheduler of the Go runtime takes part in the order of
// things. tests/e2e/simrun runs the same code as WebAssembly, where a run is a function of its seed, and
// shrinks failures. docs/decisions.md, 011 has the reason. Scenarios that people ask about are in testdata,
// with golden output.
//
// world.go has the run and its parts, each in a file of its own: engine (events, chance, the lock), hosts,
// links and network, processes, operators, faults, and the checker. The interface in backend.go hides what
// keeps the registers. It is onstores.go with its disks, or onetcd.go with the members of one etcd, whose
// state is in tests/kit/etcdmodel. A run with Sets has several worlds, one for each cluster: coordinator.go
// moves sections between them, and places.go checks which Set has which sections. To add a fault, begin at
// faultlist.go; to add a check, at check.go.
//
// What belongs here: the world around the code under test, and the checks. Nothing here knows how the
// protocol works inside.
package sim

// Package sim simulates whole clusters of the code that ships: AllocSvr nodes with all
// their goroutines, StoreSvr replicas with their acceptors and writer loops, or what stands
// between an AllocSvr and an etcd, and the wire messages between them, over a network, disks
// and clocks of the simulator's own, in the virtual time of testing/synctest.
//
// A run is drawn from a seed: the size of the cluster, its timing, and a schedule of
// faults as plain data, many of them aimed at points of the protocol (Fault). While it
// goes on, the invariants I1 to I7 and I11 of docs/protocol.md are held against disks, messages
// and nodes at every answer; callers keep a history that internal/lab/history judges; and
// once the faults are over, every counter has to move again.
//
// Run must be called in a bubble. Natively, the scheduler of the Go runtime takes part in
// the order of things; tests/e2e/simrun runs the same code as WebAssembly, where a run is
// a function of its seed, and shrinks what fails. docs/decisions.md, 011 says why it is done
// in this way. Scenarios that people ask about are in testdata, with golden output.
//
// world.go has the run and its parts, each in a file of its own: engine (events, chance, the
// lock), hosts, links and network, processes, operators, faults, and the checker. What keeps
// the registers is behind the interface in backend.go: onstores.go with its disks, or
// onetcd.go with the members of one etcd, which tests/etcdmodel is the state of. A run with Sets has
// several worlds, one a cluster: coordinator.go moves sections between them, and places.go checks
// which has what. Whoever
// wants another fault begins at faultlist.go, whoever wants another check at check.go.
//
// What belongs here: the world around the code under test, and the checks. Nothing here
// knows how the protocol works inside.
package sim

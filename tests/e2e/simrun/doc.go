// Command simrun runs the simulator of tests/sim over many seeds.
//
//	go run ./simrun -duration 5m            # fresh seeds, after all that are kept
//	go run ./simrun -seed 42 -trace         # one seed again, event by event
//	go run ./simrun -native -hours 2000     # many hours, faster, not repeatable
//	go run ./simrun -engine etcd -seed 42   # registers in etcd only; default: both engines and two Sets in turn
//
// As WebAssembly, which is the default, a run is a function of its seed: the same seed gives the same
// events. So a failure can be repeated, shrunk and looked at. Native processes are several times faster and
// meet the same faults, but the scheduler of the Go runtime takes part in them. A seed that fails there is
// tried again as WebAssembly.
//
// It guarantees that a violation is never lost: it is printed with the command that repeats it, and the
// exit code is 1.
//
// What belongs here: building and running the simulator, shrinking, reporting. What does not: the
// simulation itself, which is in tests/sim.
package main

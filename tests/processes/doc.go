// Package processes tests the cluster as people run it: the real binaries, built once
// for all its tests, as real processes that are killed with kill -9 in the middle of
// real message logs.
//
// Its tests guarantee that
//
//   - a replay of a log gives every recipient the numbers 1, 2, 3 ... without a gap;
//   - no number comes twice or too small, whatever is killed, and a killed StoreSvr is
//     not noticed at all;
//   - a cluster stopped in order goes on without a gap;
//   - bad input gets a named error with the right code, and costs nothing.
//
// "In the middle" is a matter of progress here, never of time: the test feeds the log
// itself, and holds the rest of it back until the cluster was hurt. Nothing in it
// depends on speed. go test -short leaves it out.
//
// What belongs here is what only real processes show. Faults at exact moments belong
// to the tests of the packages and to the simulation.
package processes

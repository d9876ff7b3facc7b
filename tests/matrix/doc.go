// Package matrix holds the matrix of promises: each kind of number against each event, on StoreSvr and on
// etcd. Faults sit where two features meet, so each pair has a cell.
//
// It guarantees that
//
//   - every cell names the tests that show the promise there, or the error that refuses the event and
//     the test that tries it, or the reason why the two cannot meet;
//   - each named test and error exists, and a test of a refusal mentions its error;
//   - docs/guarantees.md says what matrix.txt says;
//   - every kind of number goes through the events of one run on real processes, and keeps its
//     promises in each.
//
// What belongs here: the table, the test that walks it, and the run. A fault that concerns one package
// alone is tried there, and its test is named in the table.
package matrix

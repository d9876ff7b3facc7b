// Package placement decides the contents of the route table that the arbiter writes.
//
// It is a pure core: no clock, no I/O, no goroutine. It never changes its input. The same input gives the
// same output, whatever the order of Live.
//
// It guarantees:
//
//   - every section has an owner as soon as one node is live;
//   - the standby of a section is in another zone than its owner, if a node is live there,
//     and the second standby in a third;
//   - a node that dies or is drained moves its own sections only, to the node
//     that serves them already or to their standbys;
//   - a session that has begun to leave gets no section from then on;
//   - a node that returns does not get its sections back for having owned them: sections go
//     to a node only for balance, after Dwell, Budget of them in one plan;
//   - planning again on its own output with the same view ends in "nothing to do";
//   - after mass suspicion it makes no move, because a view that loses a third of
//     the nodes at once is more likely wrong than right.
//
// Uniqueness and order do not depend on the table. The registers decide which node may serve a section, and
// the table says only which node should.
//
// What belongs here: rules of placement and the words for the log of decisions. What does not: reading the
// view, writing the table, being the arbiter.
package placement

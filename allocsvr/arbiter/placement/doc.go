// Package placement decides what the arbiter writes into the route table.
//
// It is a pure core: no clock, no I/O, no goroutine. What it is given is never
// changed, and the same input gives the same output, whatever the order of Live.
//
// What it guarantees:
//
//   - every section has an owner as soon as one node is live;
//   - the standby of a section is in another zone than its owner, if a node is live there,
//     and the second one in a third;
//   - a node that dies or is drained moves its own sections only, to the node
//     that serves them already or to their standbys;
//   - a session that has begun to leave is given nothing, from then on;
//   - a node that returns is given nothing back for having owned it: sections go
//     to a node only for balance, after Dwell, Budget of them in one plan;
//   - planning again on its own output with the same view ends in "nothing to do";
//   - after mass suspicion it makes no move, because a view that loses a third of
//     the nodes at once is more likely wrong than right.
//
// No promise of uniqueness or order rests on any of this: the registers decide who
// may serve a section, the table says only who should.
//
// What belongs here: rules of placement and the words for the log of decisions.
// What does not: reading the view, writing the table, being the arbiter.
package placement

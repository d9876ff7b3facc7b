// Package storecare changes who the stores of a running cluster are: it puts a new store
// in the place of a dead one, adds and removes stores. The entry 012 of docs/decisions.md has the reason.
//
// It guarantees that
//
//   - a change goes from one member list to the next only if every write quorum of the
//     one shares a store with the quorums of the other, and only once everything that was
//     confirmed under the lists before is at W stores of this one;
//   - a new store votes only after it was filled from at least W of the voters that serve
//     then and that refuse the list before it already, and after every lease of that list
//     has ended;
//   - the cluster serves at every point between two steps, however long that lasts;
//   - each step leaves behind what it did in the stores, and a plan begins where the last
//     one stopped: if a command is killed, the same command from any machine goes on.
//
// What belongs here: the order of the steps. What a store admits is decided in storesvr,
// what lists may follow each other in quorum.
package storecare

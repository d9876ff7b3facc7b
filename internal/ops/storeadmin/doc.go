// Package storeadmin changes which stores a running cluster has: it puts a new store in the place of a dead
// one, adds and removes stores. The entry 012 of docs/decisions.md has the reason.
//
// It guarantees that
//
//   - a change goes from one member list to the next only if every write quorum of the
//     one shares a store with the quorums of the other, and only once every write confirmed
//     under the earlier lists is at W stores of this one;
//   - a new store votes only after it was filled from at least W of the voters that serve
//     then and that refuse the list before it already, and after every lease of that list
//     has ended;
//   - the cluster serves at every point between two steps, however long that lasts;
//   - each step leaves its result in the stores, and a plan begins where the last
//     one stopped: if a command is killed, the same command from any machine goes on.
//
// The steps of each change, where "A, B | D learns" is a list with the learner D:
//
//	replace C by D   repair; list A, B | D learns (W=2 of 2); repair, fill D; list A, B, D
//	add D            list A, B, C | D learns; repair, fill D; list A, B, C, D (R=W=3)
//	remove E         repair; list without E (R=W=majority); repair
//	abort            the list from before the learner
//
// If the next list would not overlap, because init made R=N/2 of an even N, the same voters first get R=W
// and repair.
//
// Repair ends once W voters have the list in force and the list is as old as the longest lease ever
// granted, times 1+2ρ. It merges the states of W voters by max and gives each voter the registers that it
// lacks. It accepts each document again under the list in force, because a copied minority value must not
// look chosen.
//
// No confirmed write is missed. Every write quorum of a list meets every quorum of the next one, and a
// store answers one list at a time. Repair put the writes confirmed before that on W voters. Leases of a
// list meet every quorum of the next list, and have ended before the list after it; a protected lease
// covers a higher promise.
//
// What belongs here: the order of the steps. What does not: which requests a store admits (storesvr), and
// which lists may follow each other (quorum).
package storeadmin

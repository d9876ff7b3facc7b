// Package nodes says which AllocSvr are alive, by the leases that the stores keep. It uses no other view of
// the members, because a node takes sections from a node that it believes to be dead.
//
// It remembers the other nodes: which were ever seen, their addresses, and how often each was late and came
// back. It writes nothing, and decides nothing about sections. That a node is not alive only means that it
// makes sense to ask the stores.
package nodes

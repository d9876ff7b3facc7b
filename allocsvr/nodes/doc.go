// Package nodes says which AllocSvr are alive, by the leases that the stores keep: no
// other view of the members is asked, since a node takes from another what it believes to
// be dead.
//
// It owns what this process remembers of the others: which were ever seen, where they are,
// and how often each was late and came back. It writes nothing, and decides nothing about
// sections: that a node is not alive only says that asking the stores has a point.
package nodes

// Package console is a page to look at a cluster with: what `seqctl status` says, which node owns
// what, what happened and why, look-ups, and a drill as it runs.
//
// One collector asks the nodes, once a second, and only while somebody watches; browsers get
// what it found, so that a hundred of them cost the cluster as much as one. Nothing here
// changes anything: there is no other method than GET, and no call that takes a number. It
// has a listener of its own, takes no place of callers in the admission, and is no part of
// their latency.
package console

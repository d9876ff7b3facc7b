// Package netlab makes a network of this machine's own to break: a namespace for each node, and a hub that
// joins them by a bridge. The program that breaks it runs inside the hub, so that the machine's own network
// is not touched and parallel runs cannot meet.
//
// Names carry the id of the process that made them. The next Sweep removes the leftovers of a killed
// process, and never the namespaces of a process that still runs.
//
// What belongs here: namespaces and the traffic between them (nftables). It needs root, ip and nft.
// Available says what is missing. What does not: starting processes (internal/lab/localcluster), and what
// to break and when (the callers).
package netlab

import "errors"

// ErrUnavailable: root, ip or nft is missing, or the kernel has no namespaces.
var ErrUnavailable = errors.New("network namespaces are not to be had")

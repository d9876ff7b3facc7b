// Package netlab is a network of this machine's own to break: a namespace for each
// node, and a hub that joins them by a bridge. Whoever breaks it runs inside the hub,
// so that the machine's own network is not touched and parallel runs cannot meet.
//
// It guarantees that names carry the id of the process that made them, and that what a
// killed process left behind is removed by the next Sweep, never what still runs.
//
// What belongs here: namespaces and what passes between them (nftables). It needs root,
// ip and nft; Available says what is missing. Starting processes belongs to
// internal/lab/localcluster, what to break and when to the callers.
package netlab

import "errors"

// ErrUnavailable: root, ip or nft is missing, or the kernel has no namespaces.
var ErrUnavailable = errors.New("network namespaces are not to be had")

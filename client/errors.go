package client

import (
	"github.com/seqsvr/seqsvr/client/fallback"
	"github.com/seqsvr/seqsvr/internal/sdk/call"
)

// Errors of this package. Calls also return the errors of package seq.
var (
	// ErrUnordered: the number is unique but perhaps not the largest so far, as a
	// unique-only space may answer without a quorum. Config.AllowUnordered takes it.
	ErrUnordered = call.ErrUnordered
	// ErrUnreachable: a server did not answer. It is also a seq.ErrNoRoute. It is seen only
	// as the last reason of a call whose time ran out, or beside a seq.ErrNoQuorum: one of
	// several Sets cannot be reached.
	ErrUnreachable = call.ErrUnreachable
	// ErrNoFallback: the service did not answer, and there is no window left from which
	// to make IDs here. It stands beside the reason of the call.
	ErrNoFallback = fallback.ErrNoWindow
	// ErrClosed: the Client was closed. Do not retry.
	ErrClosed = call.ErrClosed
)

package rpc

import "time"

// Limits of one message in bytes. A reply to a batch carries a route table and two
// numbers for each of one, so it may be larger than the request.
const (
	MaxRecv = 16 << 20 // what a server takes
	MaxSend = 32 << 20 // what a server answers
)

// Counters of sections that go to another node are told in messages of MaxCounters bytes, or of
// one section that alone has more, up to MaxSection.
const (
	MaxCounters = MaxRecv / 4
	MaxSection  = MaxRecv - 64<<10
)

// Flow control, in bytes. Windows that are set are fixed: gRPC then sends no pings to
// measure the connection, which cost as much as the small messages beside them.
// They also bound what a peer has sent and the server has not read yet.
const (
	StreamWindow = 256 << 10 // two of the largest batches
	ConnWindow   = 1 << 20
)

// Keepalive. gRPC lets a client ping at most each 10 s.
const (
	KeepaliveTime    = 10 * time.Second
	KeepaliveTimeout = 3 * time.Second
)

// QuorumHealth is the service name of a quorum in grpc.health.v1. An AllocSvr is SERVING if it has a quorum
// of stores, and a router if an AllocSvr that it reaches has one. Otherwise they are NOT_SERVING. The
// answer waits for nothing.
const QuorumHealth = "quorum"

// Package stream is the room of the SDK that batches: keys of many callers travel to a server in
// one message.
//
// A key gets a Slot in a batch, which waits in the queue of a stream (queue.go). A stream is a
// bidirectional gRPC stream, of which each server has a Pair. Its sender sends what waits, with no
// timer: with few callers at once, with many when the reply to the batch before has come, or when
// enough keys wait (pace.go). The receiver completes the batch by closing one channel, for which
// all of its callers wait, and each reads the answer in its Slot. An Order has a caller that does
// not wait: it is told.
//
// What belongs here: what waits, what is in flight, and what came for it. What does not: which
// server has a key, and what to do when it gives no answer. Of a server the room needs the five
// facts of Server.
package stream

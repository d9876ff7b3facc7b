// Package client is the Go SDK: numbers from a cluster, by one call.
//
// A Client carries the route table, sends each key to the AllocSvr that owns its
// section, and turns to the standbys when the owner is away. During a failover its
// callers see delay, not errors, as long as their context allows. A retry can only
// skip numbers, never repeat one: every answer that is thrown away is thrown away for
// good. Calls for one key that follow each other get rising numbers.
//
// Concurrent Next calls, and batches, to one AllocSvr travel together in batches, one
// message each: a sender sends the batch that callers fill, again and again with no
// timer. With few callers it leaves at once; with many it leaves when the reply of the
// one before has come, or enough are on it. A caller that leaves early disturbs no other,
// and a key that has to wait at the peer holds up nobody who travelled with it. How many
// calls may wait is bounded (Config.MaxQueue); more are refused with seq.ErrOverloaded.
//
// Snowflake IDs (Generate) come from any AllocSvr, in turn; segment numbers
// (TakeSegment) from the owner of the tag. With Config.Fallback the Client is lent a
// worker id, from which it makes snowflake IDs when no AllocSvr answers; nobody else
// ever has them.
//
// What belongs here: routing, retries, coalescing. What does not: anything that hands
// out a number that was not lent to it.
package client

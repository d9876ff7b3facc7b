// Package client is the Go SDK: numbers from a cluster, by one call.
//
// # How a call travels
//
// Next finds the section of the key and, by the route table (table.go), the server that owns
// it. There the key gets a slot in a batch: keys that travel in one message, on a stream
// (internal/sdk/stream). Nearly all calls end here.
//
// NextBatch gives all of its keys slots in one batch per owner, or makes a unary call if they
// are many. Current, Raise, Generate, TakeSegment and the calls on Any, Once and Owner are
// unary calls.
//
// A call that got no answer goes through the retry loop (retry.go), which all kinds of calls
// share; what they differ in is a value (rules.go). It makes attempts: where a refusal
// pointed, at the owner, at the route.Standbys, at an address of Config; or, for what all servers
// answer alike, at one after the other. Then it pauses, and begins again with the newest
// route table. It ends with ctx, with an error that no retry cures (errors.go), or when no
// server that can be reached has a quorum of stores (outage.go). A server that was silent has
// bad health (health.go): one call at a time tries it, and the others go elsewhere.
//
// # Several Sets
//
// A cluster may be one of several Sets, which divide the sections of one mapping. Then a map
// says which Set has a section; it comes with the route tables, from a server of any Set. Each
// Set looks after its own table (set.go), and a view (view.go) is all tables put together by the
// map, so that a call finds its owner as in a cluster that is alone. A NOT_OWNER that names
// another Set is followed at once and has a newer map searched for; but for an address of a Set
// that the map does not name the Client waits, since it could not say for which cluster a call
// is. Two Sets that name each other are asked with pauses. Segment tags are the root Set's; global IDs
// come from the nodes of all Sets, each of which has worker ids of its own.
//
// A Set out of service holds up no calls for others. Calls for it end with a seq.ErrNoQuorum that
// names it: within a second if its AllocSvr say that they have no quorum, and within about three
// if none of them answers (then it is an ErrUnreachable, too). Afterwards they end at
// once, until an AllocSvr of the Set answers again.
//
// # What a caller may rely on
//
// During a failover callers see delay, not errors, as long as their context allows. A retry
// can only skip numbers, never repeat one: an answer that no caller waits for any more is
// thrown away for good. Calls for one key that follow each other get rising numbers. A caller that
// leaves early disturbs no other, and a key that has to wait at the server does not hold up
// the keys that were in one batch with it. How many calls may wait is bounded
// (Config.MaxQueue); more are refused with seq.ErrOverloaded.
//
// In a space of mode=exact every take has a request id, which all of its attempts repeat
// (once.go): the server that answers in the end gives what the first attempt took, if that took
// anything. So nothing is skipped there by retries, and TakeOnce lets a caller repeat a call.
//
// With Config.Fallback the Client makes snowflake IDs by itself while the service is away
// (package fallback), and a Local makes them here always (local.go), from a worker id that it
// is lent and gives back.
//
// What belongs here: routing, retries, batches. What does not: anything that hands out a
// number that was not lent to it.
package client

// Package call is the room of the SDK that makes calls, and makes them again.
//
// A key that is taken alone gets a slot in a batch to its owner (next.go), and many keys one batch for each owner
// (owners.go, nextbatch.go). All other calls are unary.
//
// A call that got no answer goes through the retry loop (retry.go), which all kinds of calls share; what they
// differ in is a value (rules.go). It makes attempts: where a refusal pointed, at the owner, at the standbys, at an
// address of Config; or, for what all servers answer alike, at one after the other. Then it pauses, and begins
// again with the newest View. It ends with ctx, with an error that no retry cures (errors.go), or when no server
// that can be reached has a quorum of stores (outage.go). A server that was silent has bad health (health.go):
// one call at a time tries it, and the others go elsewhere.
//
// A NOT_OWNER that names another Set is followed at once and has a newer map searched for; but for an address
// of a Set that the map does not name the call waits, since it could not say for which cluster it is. Two Sets that
// name each other are asked with pauses.
//
// What a router and seqctl call beside client.Client stands here too: orders (begin.go), connections that choose a
// server for each call (conns.go), and a probe (probe.go).
//
// What belongs here: which server is asked next, and when a call ends. What does not: who has a section, and how
// keys travel.
package call

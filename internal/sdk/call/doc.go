// Package call makes the calls of the SDK, and retries them.
//
// A single key joins a batch to its owner (next.go). Many keys are split into one batch for each owner
// (owners.go, nextbatch.go). All other calls are unary.
//
// All kinds of calls share one retry loop (retry.go). A value describes their differences (rules.go). The
// loop asks one server after the other: the one that a refusal named, the owner, the standbys, an address
// of Config. If all servers answer a call alike, it asks them in turn. Then it pauses, and begins again
// with the newest View.
//
// The loop ends with ctx or with an error that no retry cures (errors.go). It also ends when no server that
// can be reached has a quorum of stores (outage.go). A server that was silent has bad health (health.go):
// one call at a time tries it, and other calls ask other servers.
//
// A NOT_OWNER that names another Set is followed at once, and starts a search for a newer map. If the map
// does not name that Set, the call waits, because it cannot tell which cluster the address belongs to. If
// two Sets redirect to each other, the loop backs off.
//
// The package also has the calls of the router and seqctl beyond client.Client: orders (begin.go),
// connections that choose a server for each call (conns.go), and a probe (probe.go).
//
// What belongs here: which server is asked next, and when a call ends. What does not: who has a section,
// and how keys travel.
package call

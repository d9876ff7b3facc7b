// Package globalid is the snowflake endpoint of an AllocSvr: namespaces, worker ids
// leased from the stores, and the gRPC service that hands out IDs.
//
// It guarantees that an ID is handed out at most once in its namespace. A worker id
// is a fenced register whose max is a high-water mark of time, in milliseconds since
// 1970. With tick(m) the layout's tick at the moment m, a holder hands out only
//
//	tick(mark at acquire) < tick <= tick(own confirmed mark)
//
// where the mark at acquire is the highest over W promises, so at or above whatever
// any holder before had confirmed, and the own mark counts once W stores have it on
// disk. Clocks, leases and restarts do not come into it: they only decide how useful
// the times in the IDs are, and that worker ids are not taken from the living.
//
// A window may also be delegated to a client, minutes long, under a worker id that the
// node takes on its behalf, does not use and does not hold: the mark alone keeps it
// apart. Such an id is not free to anybody until its mark is over.
//
// A crash anywhere leaves a mark at most one window ahead of what was handed out, and
// a worker id that is free again once the lease has ended.
//
// The namespaces are one document on the stores. Where nothing is recorded, every
// node offers three of them, so that the endpoint works without being set up:
//
//	default     Twitter's layout; also asked for by an empty name
//	regional-1  the layout "regional", alias 1
//	regional-2  the layout "regional", alias 2
//
// since the users of the regional service ask for {"namespace": 1} and 2 and expect
// datacenter, worker and sequence at that layout's places. An offer is recorded, and
// with it fixed, when it is first used; until then a PutNamespace of the same name or
// alias takes its place.
//
// What belongs here: who may use which worker id, how far ahead of time, in which
// layout. What does not: the layouts and generators themselves (package snowflake),
// the rules of registers (storesvr/acceptor), counting of stores (quorum), HTTP.
package globalid

// Package workers is the worker ids of a node: how it gains them, keeps them ahead of time,
// draws IDs from them, gives windows of them to clients, and loses them.
//
// A worker id is a fenced register (package ownership) whose max is a high-water mark of time, in
// milliseconds since 1970. With tick(m) the layout's tick at the moment m, a holder hands out
// only
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
// A client may return its window with the last tick that it used. Nothing is written; the node
// that delegated the window remembers it (loans), with a random ticket that the client must
// name. It delegates the worker id again before the mark is over, with ticks above the last used
// one and a higher mark, only if W promises show exactly the former mark: then no session has
// stepped since. It forgets the loan before that step, so an unknown outcome leaves nothing
// behind.
//
// Of several Sets, the root allots neighbouring worker ids to each for good. It records the
// allotment, so that no node of the root begins with these ids; gains their registers, which
// fails for held ones; records the highest mark that W promises showed; and then tells the Set.
// A node of the root reads the document again after W stores promised it a worker id.
//
// What belongs here: who may use which worker id, how far ahead of time. What does not: what
// namespaces there are (package namespaces), layouts and generators themselves (package
// snowflake), the rules of registers (storesvr/acceptor), gRPC.
package workers

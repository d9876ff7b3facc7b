// Package gate guards the ports of a process: it serves gRPC, and bounds what callers take of memory,
// connections, calls and time.
//
// A connection passes the bounds in this order. Seats bound the connections. frames finds
// the frames of HTTP/2, of which traffic counts the bytes that are in memory, and account bounds these
// over all connections. cancels and openCalls bound the calls of a peer before they have a goroutine.
// authorizer asks auth who may call. Admission bounds the work of the handlers.
//
// What belongs here: servers and their bounds. What does not: how calls are made, what errors and
// metadata mean, and TLS; these are of package rpc, which imports nothing from here.
package gate

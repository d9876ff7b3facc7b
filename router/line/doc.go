// Package line is the transport of protocols that send requests one behind the other on a TCP
// connection. A Server reads, bounds, carries out and answers; a Dialect knows the bytes.
//
// It guarantees that the requests of a connection are answered in their order, that a pipeline
// leaves as a few batches instead of one call a request, and that no caller holds more connections,
// time and memory than its share. A slow or silent caller delays no other.
//
// On Linux one loop serves all connections without TLS; else each has a goroutine. Both do the same
// with a connection: read what has come, begin what it wants, write the replies.
//
// A dialect provides:
//
//   - Session.Read, a parser that keeps its place: bytes in, Ops out. It bounds the size of a request,
//     and asks Conn.Stranger for callers that may send less.
//   - Op.Long, the cost of a reply. The Server answers a pipeline in parts by it.
//   - Session.Reply, the writer of answers and errors.
//   - Session.Refuse and Dialect.Full, the last words to a caller.
//   - Conn.Authenticate for its login, and Conn.Authorize for each Op that it was asked for.
//   - Session.Memory and Session.Trim, the account of its buffers.
//   - Tallies and Metrics with its names.
//
// Package resp is the dialect of Redis. Memcached's text protocol would need about 450 lines in six
// files: the parser of lines (120), incr, get and gets (100), version, stats and quit (60), the writer
// (40), errors (50), and the Dialect with its metrics (80). The router would
// add a port to its list of fronts.
//
// What belongs here: connections and the order of work. What does not: the words of a protocol,
// which are a dialect's; owners, retries and batches, which are package client's.
package line

// Package api is the gRPC services of an AllocSvr on sections: for callers (Sequence), for
// operators (Admin), and between allocators (Peer, and Peers, which calls it).
//
// It checks requests, by the rules of package seq, and bounds what callers can make a node
// keep (Limits). It guarantees that nothing is taken if any part of a request is refused,
// and that all keys of a message are judged by a clock that was read after the message had
// arrived.
//
// What belongs here: translation of messages to calls of the rooms below, and back. What
// does not: any decision about sections (packages section and owner). Global IDs and tags
// have their services beside their registers, in packages globalid and segment.
package api

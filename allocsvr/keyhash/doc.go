// Package keyhash is how the string keys of each space are hashed: a document on the stores
// that holds the secrets.
//
// It guarantees that
//
//   - a space that is to hash under a secret has one before any of its keys is hashed, the
//     same for all nodes;
//   - a node goes by what the document said when its session began, and by nothing else until
//     that ends; what a later change does to counters is decided by their marks
//     (handover.Sealed.Mark, docs/decisions.md, 038);
//   - no secret is in an error, a log line, an event or a reply.
//
// What belongs here: the document, its first secrets, its changes. What does not: hashing
// (package seq), counters.
package keyhash

// Package keyhash says how the string keys of each space are hashed. It is a document on the stores that
// holds the secrets.
//
// It guarantees that
//
//   - a space that needs a secret has one before any of its keys is hashed, and it is the same
//     for all nodes;
//   - a node uses the document that it read when its session began, until the session ends. The
//     marks of counters decide how a later change affects them (handover.Sealed.Mark,
//     docs/decisions.md, 038);
//   - no secret is in an error, a log line, an event or a reply.
//
// What belongs here: the document, its first secrets, its changes. What does not: hashing (package seq),
// counters.
package keyhash

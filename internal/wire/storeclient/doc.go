// Package storeclient is the way to the stores over gRPC: a quorum.Store for each, and
// Connect, which checks that a list of addresses is one cluster.
//
// It guarantees that
//
//   - a Client speaks with one store for its whole life: the uuid of the first reply is
//     named in every later call, and another store at that address refuses;
//   - renewals have a connection of their own, so that no large message delays a lease;
//   - nothing is repeated on its own: an error means that the outcome is unknown, and
//     the caller decides;
//   - Connect binds stores that init has just made only if all of them answer, or if one
//     of them is bound already and says who the others are.
//
// What belongs here: connections and identities. Counting acks, leases and retries belong
// to package quorum.
package storeclient

// Package quorum is the fenced register seen from a client: fan-out to N stores,
// counting of distinct acks, refusals and unknown outcomes, leases counted from
// the send time, and compare-and-swap documents.
//
// It guarantees, over stores that keep the rules of Store:
//
//   - Won is never said of a write that fewer than W distinct stores acknowledged;
//     silence is Unknown, never "did not happen";
//   - at most one session has Now() < Hold.Until() for a register, as long as clock
//     rates differ from true time by at most Rho;
//   - Load and Swap of a document are linearizable, and the outcome of a Swap is told
//     or said to be unknown.
//
// It knows no gRPC: a store is the small interface Store, which a StoreSvr behind
// gRPC, an acceptor in memory or another engine can stand behind.
package quorum

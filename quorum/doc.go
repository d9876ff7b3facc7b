// Package quorum is the fenced register seen from a client: fan-out to N stores,
// counting of distinct acks, refusals and unknown outcomes, leases counted from
// the send time, and compare-and-swap documents.
//
// It knows no gRPC: a store is the small interface Store, which a StoreSvr behind
// gRPC, an acceptor in memory or another engine can stand behind.
package quorum

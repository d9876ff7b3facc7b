// Package allocsvr is AllocSvr: it owns sections under a lease, hands out their
// UIDs' sequences from memory below a max_seq confirmed by a quorum of StoreSvr,
// and moves that ahead of need.
//
// It guarantees that a number is handed out only under an epoch that this session
// owns, above everything that any earlier epoch handed out, and below what W
// stores have on disk (protocol.md, I5 and I6). What belongs here is ownership:
// cells, stepping, acquiring, handing over, the arbiter. The rules of the
// registers are in storesvr/acceptor, the counting of stores in quorum.
package allocsvr

// Package allocsvr is AllocSvr: it owns sections under a lease, hands out their
// UIDs' sequences from memory below a max_seq confirmed by a quorum of StoreSvr,
// and moves that ahead of need.
//
// It guarantees that a number is handed out only under an epoch that this session
// owns, above everything that any earlier epoch handed out, and below what W
// stores have on disk (protocol.md, I5 and I6). What belongs here is ownership of
// sections: cells, acquiring, handing over. How a register is gained and raised is in
// tenure, who should own what in arbiter, the rules of the registers in storesvr/acceptor,
// the counting of stores in quorum.
package allocsvr

// Package allocsvr is AllocSvr: it owns sections under a lease, hands out their
// UIDs' sequences from memory below a max_seq confirmed by a quorum of StoreSvr,
// and moves that ahead of need.
//
// It guarantees that a number is handed out only under an epoch that this session
// owns, above everything that any earlier epoch handed out, and below what W
// stores have on disk (protocol.md, I5 and I6). What belongs here is the daemon, and
// sections: serving, acquiring and handing them over. The rooms below it:
//
//	tenure    how a register is gained, raised, given up and lost
//	arbiter   the route table: who should own what, and who plans it
//	nodes     who is alive
//	handover  sealed counters on their way to the next owner
//	counters  the numbers of one section
//	segment   tags; globalid: snowflake IDs
//	documents what tags and namespaces there are, as a node knows it
//
// The rules of the registers are in storesvr/acceptor, the counting of stores in quorum.
package allocsvr

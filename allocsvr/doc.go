// Package allocsvr is AllocSvr, the daemon: it owns sections under a lease, hands out their
// UIDs' sequences from memory below a max_seq confirmed by a quorum of StoreSvr, and moves
// that ahead of need.
//
// It guarantees that a number is handed out only under an epoch that this session owns,
// above everything that any earlier epoch handed out, and below what W stores have on disk
// (protocol.md, I5 and I6). What belongs here: the process (Server), a node without one
// (Node), and the wiring of the rooms below it. Calls go down the list, never up:
//
//	api       gRPC services on sections: checks and translation
//	owner     which sections a node gains and gives, and how
//	section   the table of sections: taking numbers
//	arbiter   the route table: which node should own what, and the plan
//	segment   tags; globalid: snowflake IDs
//	nodes     which nodes are alive
//	handover  sealed counters on their way to the next owner
//	counters  the numbers of one section
//	documents what the stores keep as documents, as a node knows it: string keys, Sets, spaces
//	ownership    how a register is gained, raised, given up and lost
//
// The rules of the registers are in storesvr/acceptor, the counting of stores in quorum.
package allocsvr

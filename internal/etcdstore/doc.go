// Package etcdstore is the second engine of the fenced registers: a quorum.Store over an
// etcd cluster, for teams that have one. etcd replicates by itself, so a Group and the
// Leases have this one store, with N = R = W = 1.
//
// etcd's own leases are not used: a new leader restarts them all, and a stuck old one may
// answer for them. A session is a key that its process writes anew, five times a lease, and
// what is written to a register carries the create revision of that key, the register's
// life. A register is kept for its holder exactly while the holder's key has that create
// revision, so another session must first delete the key, and deletes it only if it saw no
// new beat for longer than the holder goes on.
//
//	<prefix>/meta          the cluster; every write compares its revision
//	<prefix>/r/<register>  promised, accepted, max, life, what was released
//	<prefix>/b/<document>  the payload of a document
//	<prefix>/s/<session>   a live session: node name, address, longest lease, beat
//	<prefix>/n/<name>      the latest session of a node name
//	<prefix>/ended/<session>  it is not to be made again by a message that was under way
//	<prefix>/swept         written before marks and names of the past are removed
//	<prefix>/o             written by processes that watch sessions and have none
//
// It guarantees, with any delay, doubling or loss of messages, as long as etcd is
// linearizable and clock rates differ from true time by at most quorum.Rho:
//
//	I1  promised never decreases
//	I2  max never decreases
//	I3  accepted <= promised
//	I7  at most one session has Now() < Hold.Until() for a register
//
// Each transaction writes a register only if its revision is the one that the decision was
// made on. That etcd was put back to an older state is found where an answer shows less than
// what was seen before, and ends the cluster's use until an operator acts; it is a net with
// holes.
//
// What is different from StoreSvr: a STEP needs the promise of exactly its epoch; there is
// no grace after a restart; leases end while etcd takes no writes; exact spaces are refused
// (ErrNoExact).
//
// What belongs here: keys, values, transactions and what is made of their answers. What does
// not: connections (KV stands for them).
package etcdstore

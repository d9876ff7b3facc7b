// Package etcdstore is the second engine of the fenced registers: a quorum.Store over an etcd cluster, for
// teams that have one. etcd replicates by itself, so a Group and the Leases have this one store, with N = R
// = W = 1.
//
// The package does not use etcd's own leases, because a new leader restarts them all, and a stuck old
// leader may answer for them. A session is a key that its process writes again five times a lease. A write
// to a register carries the create revision of that key, the register's life. A register is kept for its
// holder exactly while the holder's key has that create revision. So another session must first delete the
// key. It deletes the key only if it saw no new beat for longer than the holder goes on.
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
// Messages may be delayed, doubled or lost. If etcd is linearizable, and clock rates differ from true time
// by at most quorum.Rho, the package guarantees:
//
//	I1  promised never decreases
//	I2  max never decreases
//	I3  accepted <= promised
//	I7  at most one session has Now() < Hold.Until() for a register
//
// A transaction writes a register only if its revision is the revision that the decision was made on. If an
// answer shows less than an earlier one, etcd was put back to an older state. That ends the cluster's use
// until an operator acts. The check does not find every such case.
//
// StoreSvr differs in four points. On etcd a STEP needs the promise of exactly its epoch. No grace follows
// a restart. Leases end while etcd takes no writes. Exact spaces are refused (ErrNoExact).
//
// The package departs from a plain mapping of the rules in these points:
//
//   - The renewal that attaches a register also writes it, if its last step was under an older life of the
//     session's key, or if it was promised and never stepped.
//   - A register that was stepped and never attached is released after a lease and 2 s, because the store
//     cannot see an abandoned session.
//   - A renewal that finds the session's key made again reports a reset until the session has received it.
//   - etcd's quota does not count nested puts. After NOSPACE raised steps pass and beats do
//     not, so only beats, and the key o, prove that another session is silent.
//   - A sweep first writes a key that each making of a session compares, so a message that
//     is under way fails. No clock decides when the leftovers of sessions are removed.
//   - A new era begins in place. The compare with its meta stops all writers of the former era. Then each
//     register is read and raised, and the last lease must end. An interrupted restore raises all of them
//     again.
//   - The floor of worker ids follows the restorer's clock, because etcd has none.
//   - A transaction has at most 126 registers: etcd allows 128 operations, compares
//     included.
//
// What belongs here: keys, values, transactions and the handling of their answers. What does not:
// connections (KV stands for them).
package etcdstore

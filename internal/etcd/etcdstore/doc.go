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
// Where it departs from a plain mapping of the rules:
//
//   - A register that was promised and not stepped, or stepped under an older life of the
//     session's key, is written by the renewal that attaches it.
//   - What was stepped and never attached is released after a lease and 2 s, since the store
//     cannot see an abandoned session.
//   - A renewal that finds the session's key made again owes its session a reset until the
//     session was told.
//   - etcd's quota does not count nested puts. After NOSPACE raised steps pass and beats do
//     not, so only beats, and the key o, prove that another session is silent.
//   - A sweep first writes a key that each making of a session compares, so a message that
//     is under way fails. No clock frees what sessions leave.
//   - A new era begins in place: meta of the new era stops all writers of the former one by
//     their compare; then each register is read and raised, and the last lease waited for.
//     An interrupted restore raises all of them again.
//   - The floor of worker ids follows the restorer's clock, because etcd has none.
//   - A transaction has at most 126 registers: etcd allows 128 operations, compares
//     included.
//
// What belongs here: keys, values, transactions and what is made of their answers. What does
// not: connections (KV stands for them).
package etcdstore

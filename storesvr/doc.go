// Package storesvr is StoreSvr: one replica of the fenced registers.
//
// It guarantees that
//
//   - every promise and every accepted value is fsynced before its answer; all requests
//     that wait at one moment share one transaction, and none waits for a timer;
//   - leases are answered without waiting for any fsync, and rest only on what is on
//     disk (package acceptor says why);
//   - after any error of a commit nothing is answered any more and Run returns
//     ErrCommit: the database may show what is not on disk, so the process must exit;
//   - after a start only the recorded owner can take a register until every lease
//     that the process before may have granted has ended;
//   - a disk that is nearly full refuses writes and keeps granting leases;
//   - a store votes only if it was bound to its fellow members, and never again once a
//     session proved that its disk is older than it was.
//
// Init makes a store and is the only thing that does; New opens one and listens; Run
// serves. A request goes from server, which translates, to replica, which answers what
// quorum.Store asks, or to change, which answers those that decide who the stores are. Both
// look at core, what the store has in memory under one mutex: the acceptor, the members
// (who the stores are) and the witness (whether the disk is an old copy). writer brings their
// changes to disk. The rules of the registers are in package acceptor, the files
// in disk.
package storesvr

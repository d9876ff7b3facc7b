// Package localcluster lays out and runs a whole cluster on this machine: its directory, addresses and
// cluster id, and one real process a daemon.
//
// It guarantees that
//
//   - a directory belongs to one cluster at a time (a lock), and keeps its cluster
//     id, names and addresses over restarts, so that callers find everything again;
//   - stores are initialised once, all together; a directory whose state file is
//     lost is refused, never initialised afresh over data;
//   - only processes that this package started are ever signalled, and on Linux none
//     of them outlives the process that started it.
//
// The registers are in stores, or with Config.Etcd in an etcd that is there already.
//
// The layout (Open) also serves the development mode that runs all daemons inside one process.
//
// What belongs here: starting, stopping and hurting local processes. What does not: the work of the
// processes, load and verdicts, which belong to the commands and the tests.
package localcluster

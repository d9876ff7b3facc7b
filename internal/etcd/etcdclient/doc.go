// Package etcdclient is the connection to a real etcd: an etcdstore.KV over gRPC, and the checks
// that are made before a cluster is used.
//
// It guarantees that
//
//   - every range of every transaction is linearizable;
//   - what one endpoint does not answer within a share of the time is asked of the next one, and
//     later requests begin there: a member that stands still costs that share once. A
//     transaction may so be done twice, as etcdstore.KV allows;
//   - an error says by name what an operator has to do, where one has to.
//
// It speaks gRPC with the messages of go.etcd.io/etcd/api/v3, without etcd's own client: that one
// spreads requests over all endpoints in turn, also over one that hangs, and brings a logger and
// more of its own.
//
// What belongs here: connections, tokens, messages. What does not: keys (etcdstore).
package etcdclient

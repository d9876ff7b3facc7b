// Package auth says who may do what: which role a certificate has, which principals a
// policy file names, and which gRPC method is for whom.
//
// It guarantees that a method which Methods does not list is refused, that a message is
// checked by the policy in use when it arrives, on open streams too, and that neither a
// token nor its hash stands in an error or a log.
//
// The policy in use is always a whole file that was sound. A missing or malformed policy, or one
// that others may write, stops a start; while a daemon runs, the former policy stays, with one
// ERROR line. A token decides alone if there is one: a certificate does not mend a wrong token.
// gRPC connections are closed a second before their certificate expires.
//
// A Set is another cluster. Its callers and routers count as local if the policy names it under
// clusters. Its nodes may call only the methods that say so (Access.Abroad), under an id that no
// local node has, since a node of the same name would otherwise speak for the local one's
// session.
//
// What belongs here: identities, policy, quotas, and the interceptors that check calls.
// What does not: TLS itself and the errors on the wire (internal/wire/rpc), and what the HTTP
// and RESP fronts of a router look like.
package auth

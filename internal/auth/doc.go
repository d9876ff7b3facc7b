// Package auth says who may do what: which role a certificate has, which principals a
// policy file names, and which gRPC method is for whom.
//
// It guarantees that a method which Methods does not list is refused, that a message is
// checked by the policy in use when it arrives, on open streams too, and that neither a
// token nor its hash stands in an error or a log.
//
// What belongs here: identities, policy, quotas, and the interceptors that check calls.
// What does not: TLS itself and the errors on the wire (internal/rpc), and what the HTTP
// and RESP fronts of a router look like.
package auth

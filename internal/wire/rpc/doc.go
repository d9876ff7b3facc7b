// Package rpc is what every gRPC service and caller of this module shares: how
// to dial, whom a call is for and from, and how errors travel. Package gate serves.
//
// It guarantees that a sentinel error of package seq, returned by a handler in any
// number of wrappings, is on the caller's side an error for which errors.Is holds,
// and that an error without a name reaches the caller as Internal with no text of
// its own. Error codes and statuses are paired in one table, in errors.go.
//
// TLS files may be replaced while a process runs. The few lines that read them again are
// by hand: grpc's security/advancedtls switches off the checks of crypto/tls and makes its
// own, where here each handshake gets a fresh tls.Config and is left to crypto/tls.
//
// What belongs here: dialling, TLS, metadata, the error table, and the shapes of
// seq types on the wire. What does not: retries, routing and anything that knows
// one service from another, and servers.
package rpc

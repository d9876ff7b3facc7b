// Package router is the SDK behind a gRPC, an HTTP and a RESP front, for callers that do
// not carry it: it finds the owner of a key, retries through failovers, and lets single
// calls of many callers leave as few messages.
//
// It guarantees what package client does, and keeps no state that matters: any number
// of routers may stand beside each other, and one may be killed at any time. Requests
// are checked before anything is forwarded, by the checks in package seq, with the field
// named.
//
// fronts.go has the list of fronts: the listener of each, and how it serves and counts. Package line
// has the connections of the front for clients of Redis.
//
// The methods stand once, in server.go, snowflake.go and segment.go. The HTTP front reaches
// them under /v1 with the same messages in JSON, which message.go reads and writes by their
// descriptors. By hand are only the paths that callers of other systems know: http_compat.go
// and http_tags.go. openapi.yaml describes all, and the tests compare it with the messages.
//
// What belongs here: the fronts and their errors. What does not: routing and retries,
// which are in package client.
package router

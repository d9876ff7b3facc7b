// Package router is the SDK behind a gRPC and an HTTP front, for callers that do not
// carry it: it finds the owner of a key, retries through failovers, and lets single
// calls of many callers leave as few messages.
//
// It guarantees what package client does, and keeps no state that matters: any number
// of routers may stand beside each other, and one may be killed at any time. Requests
// are checked here, with the field named, before anything is forwarded.
//
// What belongs here: the shapes of the two fronts and their errors. What does not:
// routing and retries, which are in package client.
package router

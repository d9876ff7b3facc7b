// Package dev implements `seqctl dev`. It runs a whole cluster on this machine by one command, inside this
// process or, with --processes, as real processes.
//
// It guarantees that a directory used before goes on where it was, above every number that was handed out.
// The ready file appears only once all daemons serve. Ctrl-C stops routers, then allocators, then stores,
// so that no number is left out. Both kinds share the directory's layout (internal/lab/localcluster), so
// each kind goes on from a directory of the other.
//
// This is the only package in which the daemons' packages meet in one process.
package dev

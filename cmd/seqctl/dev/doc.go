// Package dev is `seqctl dev`: a whole cluster on this machine by one command, inside
// this process or, with --processes, as real processes.
//
// It guarantees that a directory used before goes on where it was, above everything
// that was handed out; that the ready file appears only once everything serves; and
// that Ctrl-C stops routers, then allocators, then stores, so that no number is left
// out. Both kinds share the directory's layout (internal/lab/localcluster): what one kind
// left, the other takes up.
//
// This is the one place where the daemons' packages meet in one process.
package dev

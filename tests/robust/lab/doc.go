// Package lab breaks a cluster of real processes in every way it knows, one fault after
// the other or two at once, while callers take numbers of all kinds, and judges the
// whole history.
//
// It guarantees that every call of every caller is recorded with its times before the
// verdict, that a run names its seed, that each fault is healed before the next round,
// and that processes, mounts and connections are gone when Close returns.
//
// What belongs here: the cluster with its network, proxies and disks, the callers, the
// faults, and the report. The namespaces are internal/netlab, the processes
// internal/localcluster, the promises internal/history; a disk that forgets is a program
// of its own (tests/e2e/powercut), spoken to over its standard input.
package lab

import "errors"

// Errors of a run.
var (
	// ErrSetup: the cluster could not be started; nothing was tried.
	ErrSetup = errors.New("cannot set up the cluster")
	// ErrNotRecovered: the cluster did not serve everything again after a fault.
	ErrNotRecovered = errors.New("cluster did not recover")
	// ErrUnexpected: a process did something else than the fault should make it do.
	ErrUnexpected = errors.New("not what the fault should do")
	// ErrViolated: a promise was broken.
	ErrViolated = errors.New("a promise is broken")
	// ErrDisk: the helper of a store's disk did not do as it was told.
	ErrDisk = errors.New("disk helper failed")
)

// Package rounds has the scenarios of internal/lab break a cluster in turn, one or two in
// a round, with victims and times that chance draws, while callers take numbers of all
// kinds, and judges the whole history. It adds scenarios for what packet filters and
// signals cannot do: ways that are slow or hang, disks that fail, fill up and forget, old and cloned disks, a
// rehash under load, a second cluster of the same name, and a restore that lacks spaces. A cluster
// of two Sets has scenarios of its own: sections move while coordinators, nodes and whole Sets die,
// and after each round the Sets must agree on who has what.
//
// It guarantees that every call of every caller is recorded with its times before the
// verdict, that a run names its seed, that each fault is healed before the next round,
// and that processes, mounts and connections are gone when the site is closed.
//
// What belongs here: the proxies, the disks, the callers, the order of the rounds and the
// report. A disk that forgets is a program of its own (tests/e2e/powercut), spoken to over
// its standard input.
package rounds

import "errors"

// Errors of a run.
var (
	// ErrSetup: the cluster could not be started; nothing was tried.
	ErrSetup = errors.New("cannot set up the cluster")
	// ErrViolated: a promise was broken.
	ErrViolated = errors.New("a promise is broken")
	// ErrDisk: the helper of a store's disk did not do as it was told.
	ErrDisk = errors.New("disk helper failed")
)

package lab

import (
	"errors"

	"github.com/seqsvr/seqsvr/internal/lab/netlab"
)

// Errors of a lab. The first of them come before anything is broken.
var (
	// ErrUnknownDrill: no drill has this name.
	ErrUnknownDrill = errors.New("unknown drill")
	// ErrTooSmall: the cluster has too few nodes of a kind for the scenario.
	ErrTooSmall = errors.New("cluster is too small for the drill")
	// ErrEngine: the drill has nothing to break where the registers are, or they are not where
	// it was told.
	ErrEngine = errors.New("the registers are kept elsewhere")
	// ErrNoNamespaces: root, ip or nft is missing, or the cluster lives outside of
	// namespaces.
	ErrNoNamespaces = netlab.ErrUnavailable
	// ErrReadyFile: it is no file of `seqctl dev --processes`.
	ErrReadyFile = errors.New("bad ready file")
	// ErrUnhealthy: the cluster does not serve everything already; nothing was broken.
	ErrUnhealthy = errors.New("cluster is not healthy")
	// errFrozen comes with ErrUnhealthy; seqctl rebalance lifts it.
	errFrozen = errors.New("the arbiter is frozen")
	// ErrNotRecovered: the cluster did not serve everything again in time.
	ErrNotRecovered = errors.New("cluster did not recover")
	// ErrUnexpected: a process did something else than the scenario should make it do.
	ErrUnexpected = errors.New("not what the fault should do")
	// ErrSkipped: after a planned change sequences stand above what any node handed out,
	// though no node lost its lease.
	ErrSkipped = errors.New("the cluster skipped numbers in a planned change")
	// ErrSpread: calls of another Set than the one that was killed failed.
	ErrSpread = errors.New("callers of another Set saw errors")
	// ErrUnnamed: callers of a Set that was killed got another error than one that names it.
	ErrUnnamed = errors.New("callers were not told which Set is dead")
	// ErrUnaudited: what an exact space holds could not be asked for, so nothing is known of it.
	ErrUnaudited = errors.New("the exact space was not audited")
	// ErrBroken: a number was handed out twice, or a smaller one after a larger one.
	ErrBroken = errors.New("the sequences are broken")
)

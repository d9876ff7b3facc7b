package workers

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Lease is one worker id under one epoch of this session, from its first confirmed
// mark to its loss or release.
//
//	floor < tick of each ID from gen <= confirmed.tick(layout)
//	W stores have the register's max at or above confirmed
type Lease struct {
	Namespace  namespaces.Namespace // as it was recorded when the lease was acquired
	Layout     string               // preset or text, for replies
	Datacenter snowflake.Datacenter
	Worker     snowflake.Worker
	Register   seq.Register
	Round      uint64

	issuer *Issuer
	floor  snowflake.Tick
	gen    *snowflake.Generator

	confirmed atomic.Uint64 // a mark; written by the acquisition, then by the keeper only

	// asked is the highest mark whose step has an unknown outcome, or 0. The next step asks for as much.
	// retryAt is when a failed step may be repeated, on the clock. Only the keeper uses both.
	asked   Mark
	retryAt time.Duration

	// trouble is the reason why the last step failed for good, or nil. Each failure is a new pointer, so
	// that a waiting call can tell it from an earlier failure.
	trouble atomic.Pointer[trouble]

	hold ownership.Lease // nil until it is in use; guarded by Workers.mu
}

type trouble struct {
	err   error
	until time.Duration // on the clock: no other step is tried before
}

// Mark is the highest that W stores have: the end of the window.
func (l *Lease) Mark() Mark { return Mark(l.confirmed.Load()) }

// last is the highest moment that an ID of the lease may carry so far.
func (l *Lease) last() Mark { return startOf(l.Namespace.Layout, l.gen.Last()) }

// confirm lets the generator use the window up to a mark that W stores have.
func (l *Lease) confirm(m Mark) {
	l.confirmed.Store(uint64(m))
	l.gen.Extend(m.tick(l.Namespace.Layout))
}

// lose stops a lease for good, because another session has the worker id, and looks for
// another id if this one was in use.
func (l *Lease) lose(why string) {
	if !l.giveUp() {
		return
	}
	l.issuer.w.log.Warn("worker id lost", "namespace", l.Namespace.Name, "datacenter", l.Datacenter, "worker", l.Worker, "round", l.Round, "why", why)
	if l.issuer.wanted() {
		l.issuer.acquire()
	}
}

// giveUp seals the generator before anything else, so that no ID can come from
// it once others may have the worker id; false if that was done before.
func (l *Lease) giveUp() bool {
	w := l.issuer.w
	l.gen.Seal()
	w.mu.Lock()
	mine, hold := w.held[l.Register] == l, l.hold
	if mine {
		delete(w.held, l.Register)
	}
	w.mu.Unlock()
	l.issuer.current.CompareAndSwap(l, nil)
	if !mine {
		return false
	}
	if hold != nil {
		hold.Drop()
	}
	w.news.fire()
	return true
}

// adopt gives up a lease whose layout or policy has changed, or whose namespace is
// retired; the next request acquires one under the new, or is refused. The old one's IDs
// stay apart from the new one's by its mark.
func (l *Lease) adopt(ns namespaces.Namespace) {
	if ns.Layout == l.Namespace.Layout && ns.Retired == 0 || !l.giveUp() {
		return
	}
	w := l.issuer.w
	w.log.Info("layout changed or namespace retired", "retired", ns.Retired != 0, "namespace", ns.Name, "from", l.Namespace.Layout.String(), "to", ns.Layout.String())
	w.releases(l)
}

// releases gives a lease up, unless that was done, and tells the stores so in the background.
func (w *Workers) releases(l *Lease) {
	l.giveUp()
	w.spawn(func(ctx context.Context) {
		if err := w.tell(ctx, []*Lease{l}); err != nil {
			w.log.Debug("worker id not released", "worker", l.Worker, "error", err)
		}
	})
}

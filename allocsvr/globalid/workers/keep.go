package workers

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// unknownPause is the pause before a step of unknown outcome is repeated.
	unknownPause = 50 * time.Millisecond
	// refusedPause is the pause before a refused step is repeated.
	refusedPause = 250 * time.Millisecond
)

// Run extends windows ahead of need until ctx ends, all that are due in one message.
// It is the only one that sends steps for open leases.
func (w *Workers) Run(ctx context.Context) {
	for wait := time.Duration(0); w.wake.Wait(ctx, wait); {
		wait = w.extend(ctx)
	}
}

// extend sends one step for all leases that need one, and returns how long to wait
// before the next look.
func (w *Workers) extend(ctx context.Context) time.Duration {
	wait := w.cfg.Window / 4
	clock, now := w.cfg.Clock.Now(), w.now()
	var open []extension
	lapsed := false
	for _, l := range w.leases() {
		if !l.issuer.wanted() {
			continue
		}
		last := l.last()
		to := target(now, last, w.cfg.Window)
		if !due(l.Mark(), now, last, to, w.cfg.Window) {
			continue
		}
		if clock < l.retryAt {
			wait = min(wait, l.retryAt-clock)
			continue
		}
		lapsed = lapsed || l.ranOut(now)
		// After an unknown outcome the same or more, never less.
		to = max(to, l.asked)
		open = append(open, extension{l, to})
	}
	if len(open) == 0 {
		return wait
	}
	if lapsed { // what has changed meanwhile is adopted before anything is extended
		if _, err := w.names.Load(ctx); err != nil {
			w.log.Debug("namespaces not read, no window is extended", "error", err)
			return unknownPause
		}
	}
	again := ownership.Raise(ctx, w.cfg.Holder, open)
	clock = w.cfg.Clock.Now()
	for _, e := range again {
		wait = min(wait, max(0, e.l.retryAt-clock))
	}
	w.news.fire()
	return wait
}

// extension is a lease whose window is to be longer: its ownership.Owned.
type extension struct {
	l  *Lease
	to Mark
}

// Next implements ownership.Owned.
func (e extension) Next() (ownership.Step, bool) {
	epoch := seq.Epoch{Round: e.l.Round, Session: e.l.issuer.w.cfg.Holder.Session}
	return ownership.Step{Register: e.l.Register, Epoch: epoch, Max: uint64(e.to)}, true
}

// Confirmed implements ownership.Owned.
func (e extension) Confirmed(ownership.Step) {
	e.l.asked, e.l.retryAt = 0, 0
	e.l.confirm(e.to)
	e.l.trouble.Store(nil)
}

// Unconfirmed implements ownership.Owned.
func (e extension) Unconfirmed(_ ownership.Step, out quorum.Outcome) {
	l, w := e.l, e.l.issuer.w
	clock, log := w.cfg.Clock.Now(), w.log.With("namespace", l.Namespace.Name, "worker", l.Worker)
	if out.State == quorum.Unknown {
		// It may be on disk, and is not confirmed: the old ceiling stays.
		l.asked, l.retryAt = max(l.asked, e.to), clock+unknownPause
		log.Debug("window not extended", "error", out.Err)
		return
	}
	// Refused: too far beyond the stores' clocks, or they are full. The worker id
	// is kept: another one would fare no better, and trying one after the other
	// would push up the mark of each at the store that is wrong.
	l.asked, l.retryAt = 0, clock+refusedPause
	err := stepError(out.Err)
	if l.trouble.Swap(&trouble{err: err, until: l.retryAt}) == nil {
		log.Warn("window not extended", "error", err)
	}
}

// Lost implements ownership.Owned.
func (e extension) Lost(_ ownership.Step, out quorum.Outcome) { e.l.lose(fmt.Sprint(out.Err)) }

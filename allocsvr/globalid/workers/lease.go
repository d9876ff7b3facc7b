package workers

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/quorum"
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

// Mark returns the highest that W stores have: the end of the window.
func (l *Lease) Mark() Mark { return Mark(l.confirmed.Load()) }

// last returns the highest moment that an ID of the lease may carry so far.
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

const (
	// reread is the time after which a call that waits for its clock to reach a mark looks again.
	reread = 10 * time.Millisecond
	// nudge is the time after which a call that waits for a window asks for it again. The window may be due
	// only once the clock has moved on.
	nudge = 50 * time.Millisecond
	// longestDraw bounds how long a draw waits for ticks. A longer draw would outlast its caller, who would
	// repeat it and lose the drawn IDs each time.
	longestDraw = 2 * time.Second
)

// atOnce returns how many IDs a worker of the layout makes within longestDraw, and at least the IDs of one
// tick, if the layout waits for ticks. Zero means no limit.
func atOnce(l snowflake.Layout) uint64 {
	if l.Policy().Overflow != snowflake.OverflowWait {
		return 0
	}
	return (l.MaxSequence() + 1) * max(1, uint64(longestDraw/l.Unit()))
}

// Draw takes count IDs, and waits for the window if necessary. It returns snowflake.ErrSealed if the worker
// id went away. Then the IDs drawn until then are dropped, so that all IDs are of one worker, and
// Issuer.Lease returns another lease. Other errors are the errors of globalid.Service.Generate.
func (l *Lease) Draw(ctx context.Context, count int) ([]snowflake.Batch, error) {
	if most := atOnce(l.gen.Layout()); most > 0 && uint64(count) > most {
		return nil, fmt.Errorf("%w: count is %d, expected at most %d: a worker makes no more within %v", seq.ErrTickUsedUp, count, most, longestDraw)
	}
	batches := make([]snowflake.Batch, 0, 1)
	had := l.trouble.Load()
	for count > 0 {
		before := l.Mark()
		b, err := l.gen.Take(ctx, count)
		switch {
		case err == nil:
			batches = append(batches, b)
			count -= b.Len()
		case errors.Is(err, snowflake.ErrNoWindow):
			if err := l.awaitWindow(ctx, before, had); err != nil {
				return nil, err
			}
		case errors.Is(err, snowflake.ErrClockRollback) && l.settling():
			if ended := l.issuer.w.cfg.Sleep(ctx, reread); ended != nil {
				return nil, fmt.Errorf("%w: the clock has not reached the mark of the worker id: %w", issuing.Name(err), ended)
			}
		case errors.Is(err, snowflake.ErrClockRollback) && l.strand():
			return nil, snowflake.ErrSealed
		case errors.Is(err, snowflake.ErrSealed):
			l.issuer.current.CompareAndSwap(l, nil)
			return nil, err
		default:
			return nil, issuing.Name(err)
		}
	}
	return batches, nil
}

// settling reports whether the clock still has to reach the mark at which the worker id
// was acquired, and will within about a window: the case after a quick restart with few
// worker ids. It did not move back then, so no policy is asked.
func (l *Lease) settling() bool {
	w := l.issuer.w
	return l.gen.Last() == l.floor && startOf(l.Namespace.Layout, l.floor).ahead(w.now()) <= 2*w.cfg.Window
}

// strand gives up a lease whose IDs are further ahead of the clock than the node may borrow, because
// the clock was ahead and is right again. It reports whether it did: Issuer.Lease then draws another
// worker id. A node bound to one id waits for the clock, and so does a node in a crowded pool, since
// the id stays unusable until the clock reaches its mark.
func (l *Lease) strand() bool {
	w, i := l.issuer.w, l.issuer
	far := max(l.last(), l.Mark()).ahead(w.now())
	if far <= reachOf(w.cfg.Window)+w.cfg.Window || w.cfg.Node.Worker != nil {
		return false
	}
	if ahead, known := w.cfg.ClockAhead(); !known || ahead.Abs() > maxOff {
		return false // it may be the clock that is wrong now
	}
	// The pool was last seen before this worker id was taken, and another one is to be.
	if p := i.Pool(); (Pool{Held: p.Held + 2, Size: p.Size}).Crowded() {
		return false
	}
	if l.giveUp() {
		w.log.Warn("worker id given up: the clock was ahead and came back; nobody can use the id before its mark", "namespace", l.Namespace.Name,
			"datacenter", l.Datacenter, "worker", l.Worker, "mark", l.Mark().Time(), "ahead", far)
		w.releases(l)
	}
	return true
}

// awaitWindow waits a while for the mark to be another than before. An error says that
// the window was refused: since the caller came, which is when had was its trouble, or
// a moment ago. The caller looks again otherwise: the clock may have moved as well.
func (l *Lease) awaitWindow(ctx context.Context, before Mark, had *trouble) error {
	w, end := l.issuer.w, before.Time().Format(time.RFC3339Nano)
	changed := w.news.next() // before looking, so that none is missed
	switch {
	case ctx.Err() != nil && w.now() < before:
		return fmt.Errorf("%w: time borrowed up to %s: %w", seq.ErrOverloaded, end, ctx.Err())
	case ctx.Err() != nil:
		return fmt.Errorf("%w: window above %s not confirmed: %w", seq.ErrNoQuorum, end, ctx.Err())
	case l.issuer.current.Load() != l:
		return snowflake.ErrSealed
	case l.Mark() != before:
		return nil
	case before.ahead(w.now()) > reachOf(w.cfg.Window)+w.cfg.Window:
		// No later mark is asked for before the clock is back: nothing to wait for.
		if l.strand() {
			return snowflake.ErrSealed
		}
		return fmt.Errorf("%w: time borrowed up to %s, and the clock is %s before that", seq.ErrClockRollback, end, before.ahead(w.now()))
	}
	if err := w.cfg.Quorum(); err != nil {
		return fmt.Errorf("window above %s not confirmed: %w", end, err)
	}
	if t := l.trouble.Load(); t != nil && (t != had || w.cfg.Clock.Now() < t.until) {
		return t.err
	}
	w.wake.Kick()
	timer := time.NewTimer(nudge)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

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

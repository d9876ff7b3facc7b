package globalid

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/tenure"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

const (
	// unknownPause is before a step whose outcome is not known is repeated.
	unknownPause = 50 * time.Millisecond
	// refusedPause is before one that was refused is.
	refusedPause = 250 * time.Millisecond
	// warnEvery is how often the near end of a layout is told.
	warnEvery = 24 * time.Hour
)

// keep extends windows ahead of need until ctx ends, all that are due in one message.
// It is the only one that sends steps for open leases.
func (s *Service) keep(ctx context.Context) {
	for wait := time.Duration(0); pause(ctx, wait, s.wake); {
		wait = s.extend(ctx)
	}
}

// extend sends one step for all leases that need one, and returns how long to wait
// before the next look.
func (s *Service) extend(ctx context.Context) time.Duration {
	wait := s.cfg.Window / 4
	clock, now := s.cfg.Clock.Now(), s.now()
	var open []extension
	for _, l := range s.leases() {
		if !l.issuer.wanted(clock) {
			continue
		}
		last := l.last()
		to := target(now, last, s.cfg.Window)
		if !due(l.mark(), now, last, to, s.cfg.Window) {
			continue
		}
		if clock < l.retryAt {
			wait = min(wait, l.retryAt-clock)
			continue
		}
		// After an unknown outcome the same or more, never less.
		to = max(to, l.asked)
		open = append(open, extension{s, l, to})
	}
	if len(open) == 0 {
		return wait
	}
	again := tenure.Raise(ctx, s.cfg.Holder, open)
	clock = s.cfg.Clock.Now()
	for _, e := range again {
		wait = min(wait, max(0, e.l.retryAt-clock))
	}
	s.news.fire()
	return wait
}

// extension is a lease whose window is to be longer: its tenure.Owned.
type extension struct {
	s  *Service
	l  *lease
	to mark
}

// Next implements tenure.Owned.
func (e extension) Next() (tenure.Step, bool) {
	epoch := seq.Epoch{Round: e.l.round, Session: e.s.cfg.Holder.Session}
	return tenure.Step{Register: e.l.register, Epoch: epoch, Max: uint64(e.to)}, true
}

// Confirmed implements tenure.Owned.
func (e extension) Confirmed(tenure.Step) {
	e.l.asked, e.l.retryAt = 0, 0
	e.l.confirm(e.to)
	e.l.trouble.Store(nil)
}

// Unconfirmed implements tenure.Owned.
func (e extension) Unconfirmed(_ tenure.Step, out quorum.Outcome) {
	l, clock, log := e.l, e.s.cfg.Clock.Now(), e.s.log.With("namespace", e.l.ns.Name, "worker", e.l.worker)
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

// Lost implements tenure.Owned.
func (e extension) Lost(_ tenure.Step, out quorum.Outcome) { e.s.lose(e.l, fmt.Sprint(out.Err)) }

// nobody asks as no session: what this node holds is held then, too.
const nobody seq.Session = 0

// look reads worker registers for people to see.
func (s *Service) look(ctx context.Context, prefix string) (map[seq.Register]quorum.Outcome, error) {
	return s.cfg.ReadPrefix(ctx, nobody, prefix)
}

// watch looks how full the pool of a lease's worker ids is.
func (s *Service) watch(ctx context.Context, l *lease) {
	found, err := s.look(ctx, prefixIn(l.ns.Name, l.datacenter))
	if err != nil {
		return // the stores have other ways to be noticed
	}
	used := survey(l.ns.Name, found, nobody, s.latest())
	held := 0
	for _, u := range used {
		if !u.free {
			held++
		}
	}
	s.pooled(l.issuer, l.datacenter, pool{held: held, size: uint64(l.ns.Layout.MaxWorker()) + 1})
}

// pooled keeps how full a pool is, and tells when it gets crowded.
func (s *Service) pooled(i *issuer, dc snowflake.Datacenter, p pool) {
	i.mu.Lock()
	was := i.pool
	i.pool = p
	i.mu.Unlock()
	if p.crowded() && !was.crowded() {
		s.log.Warn("worker ids run short", "namespace", i.name, "datacenter", dc, "held", p.held, "pool", p.size)
	}
}

// warnEnd tells of a layout that runs out within a year, once a day.
func (s *Service) warnEnd(i *issuer, ns Namespace) {
	left := ns.Layout.Remaining(s.cfg.Wall())
	if left > snowflake.ExhaustionWarning {
		return
	}
	clock := s.cfg.Clock.Now()
	i.mu.Lock()
	tell := i.warned == 0 || clock-i.warned > warnEvery
	if tell {
		i.warned = max(1, clock)
	}
	i.mu.Unlock()
	if tell {
		s.log.Warn("layout runs out", "namespace", ns.Name, "layout", ns.Layout.String(),
			"at", ns.Layout.Exhausted(), "days left", int(left.Hours()/24))
	}
}

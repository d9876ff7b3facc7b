package globalid

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

const (
	// defaultWait bounds a request whose caller set no deadline.
	defaultWait = 5 * time.Second
	// reread is how often one that waits for its clock to reach a mark looks again.
	reread = 10 * time.Millisecond
	// nudge is how often one that waits for a window asks for it again: it may be due
	// only once the clock has moved on.
	nudge = 50 * time.Millisecond
)

// Issue is what one call got: IDs of one worker.
type Issue struct {
	Namespace  string
	Layout     string // preset, or text if it is none
	Datacenter snowflake.Datacenter
	Worker     snowflake.Worker
	Batches    []snowflake.Batch // count IDs over all
}

// Generate hands out count IDs, 1 to seq.MaxIDs. Errors: seq.ErrBadCount,
// seq.ErrUnknownNamespace, seq.ErrWorkersExhausted, seq.ErrClockOff,
// seq.ErrClockRollback, seq.ErrTimeExhausted, seq.ErrDatacenterTaken, seq.ErrNodeUnfit,
// seq.ErrTickUsedUp (policy), seq.ErrOverloaded, seq.ErrNoQuorum, seq.ErrStoreFull, seq.ErrShuttingDown,
// or ctx's. Safe to retry: a repeated call gets others.
func (s *Service) Generate(ctx context.Context, ref Ref, count int) (Issue, error) {
	if err := seq.CheckIDs("count", uint64(count)); err != nil {
		return Issue{}, fmt.Errorf("generate: %w", err)
	}
	i := s.view.Load().find(ref)
	if i == nil {
		var err error
		if i, err = s.find(ctx, ref); err != nil {
			return Issue{}, fmt.Errorf("generate: %w", err)
		}
	}
	i.touch(s.cfg.Clock.Now())
	for {
		l, err := s.leaseOf(ctx, i)
		if err != nil {
			return Issue{}, fmt.Errorf("generate: %w", err)
		}
		batches, err := s.draw(ctx, l, count)
		if errors.Is(err, snowflake.ErrSealed) {
			// The worker id went away half-way. What was drawn is left out, so that an
			// answer is of one worker.
			i.current.CompareAndSwap(l, nil)
			continue
		}
		if err != nil {
			return Issue{}, fmt.Errorf("generate: namespace %q worker %d: %w", i.name, l.worker, err)
		}
		i.issued.Add(uint64(count))
		return Issue{Namespace: i.name, Layout: l.layout, Datacenter: l.datacenter, Worker: l.worker, Batches: batches}, nil
	}
}

// draw takes count IDs from one lease, waiting for its window where that is needed.
func (s *Service) draw(ctx context.Context, l *lease, count int) ([]snowflake.Batch, error) {
	batches := make([]snowflake.Batch, 0, 1)
	had := l.trouble.Load()
	for count > 0 {
		before := l.mark()
		b, err := l.gen.Take(ctx, count)
		switch {
		case err == nil:
			batches = append(batches, b)
			count -= b.Len()
		case errors.Is(err, snowflake.ErrNoWindow):
			if err := s.awaitWindow(ctx, l, before, had); err != nil {
				return nil, err
			}
		case errors.Is(err, snowflake.ErrClockRollback) && s.settling(l):
			if ended := s.cfg.Sleep(ctx, reread); ended != nil {
				return nil, fmt.Errorf("%w: the clock has not reached the mark of the worker id: %w", issuing.name(err), ended)
			}
		default:
			return nil, issuing.name(err)
		}
	}
	return batches, nil
}

// settling says whether the clock still has to reach the mark at which the worker id
// was acquired, and will within about a window: the case after a quick restart with few
// worker ids. It did not move back then, so no policy is asked.
func (s *Service) settling(l *lease) bool {
	return l.gen.Last() == l.floor && startOf(l.ns.Layout, l.floor).ahead(s.now()) <= 2*s.cfg.Window
}

// awaitWindow waits a while for the mark to be another than before. An error says that
// the window was refused: since the caller came, which is when had was its trouble, or
// a moment ago. The caller looks again otherwise: the clock may have moved as well.
func (s *Service) awaitWindow(ctx context.Context, l *lease, before mark, had *trouble) error {
	changed := s.news.next() // before looking, so that none is missed
	switch {
	case ctx.Err() != nil && s.now() < before:
		return fmt.Errorf("%w: time borrowed up to %s: %w", seq.ErrOverloaded, before.time().Format(time.RFC3339Nano), ctx.Err())
	case ctx.Err() != nil:
		return fmt.Errorf("%w: window above %s not confirmed: %w", seq.ErrNoQuorum, before.time().Format(time.RFC3339Nano), ctx.Err())
	case l.issuer.current.Load() != l:
		return snowflake.ErrSealed
	case l.mark() != before:
		return nil
	}
	if err := s.cfg.Quorum(); err != nil {
		return fmt.Errorf("window above %s not confirmed: %w", before.time().Format(time.RFC3339Nano), err)
	}
	if t := l.trouble.Load(); t != nil && (t != had || s.cfg.Clock.Now() < t.until) {
		return t.err
	}
	s.wake.Kick()
	timer := time.NewTimer(nudge)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

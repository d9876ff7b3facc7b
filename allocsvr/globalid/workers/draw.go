package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

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

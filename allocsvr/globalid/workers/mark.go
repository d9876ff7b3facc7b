package workers

import (
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Mark is a high-water mark: milliseconds since 1970, the value of a worker register.
// Milliseconds, and not ticks, so that stores can hold it against their own clocks
// whatever the layout, and so that it means the same after a change of the layout.
type Mark uint64

func markOf(t time.Time) Mark { return Mark(max(0, t.UnixMilli())) }

func (m Mark) add(d time.Duration) Mark { return m + Mark(d.Milliseconds()) }

// ahead returns how far m is above the other mark, or 0 if it is not above.
func (m Mark) ahead(of Mark) time.Duration {
	if m <= of {
		return 0
	}
	// No longer than a Duration holds: marks come from the stores.
	return time.Duration(min(uint64(m-of), uint64(1<<63-1)/uint64(time.Millisecond))) * time.Millisecond
}

// Time returns the moment of the mark, in UTC.
func (m Mark) Time() time.Time { return time.UnixMilli(int64(min(uint64(m), 1<<63-1))).UTC() }

// tick returns the tick that contains the mark: both the highest one that a holder may use
// once the mark is confirmed, and the floor of the next holder. It rises with the
// mark, so what is above a floor was never below a confirmed mark.
func (m Mark) tick(l snowflake.Layout) snowflake.Tick {
	at := m.Time()
	if at.Before(l.Epoch()) {
		return 0
	}
	t, err := l.TickAt(at)
	if err != nil {
		return l.MaxTick()
	}
	return t
}

// startOf returns the mark at which a tick begins.
func startOf(l snowflake.Layout, t snowflake.Tick) Mark {
	at, err := l.TimeOf(t)
	if err != nil {
		at = l.Exhausted()
	}
	return markOf(at)
}

// A mark may be reach windows ahead of the clock, and at most maxReach. Only the borrow policies need more
// than one window. Stores accept marks up to quorum.WorkerAhead ahead of their own clocks.
const (
	reach    = 10
	maxReach = 10 * time.Minute
)

// reachOf returns how far a mark may be ahead of the clock.
func reachOf(window time.Duration) time.Duration { return min(reach*window, maxReach) }

// target returns the mark to ask for. It is a window above both the clock and the last time handed out,
// which the borrow policies take ahead of the clock. It is never further ahead than reachOf.
func target(now, last Mark, window time.Duration) Mark {
	return min(max(now, last).add(window), now.add(reachOf(window)))
}

// due reports whether to ask for the target: half of the window is used up, and asking
// brings a good part of one. The latter keeps a borrower at the end of its reach from
// writing at every request.
func due(confirmed, now, last, target Mark, window time.Duration) bool {
	return confirmed.ahead(max(now, last)) < window/2 && target.ahead(confirmed) >= window/4
}

const (
	// maxBehind bounds how far this node's clock may be behind the stores' clocks. If it is farther behind,
	// the node takes no worker id, because its IDs would have times long past.
	maxBehind = 10 * time.Minute
	// maxOff bounds how far a clock that counts as right may be off.
	maxOff = time.Minute
)

// behind says that this node's clock is too far behind: seq.ErrClockOff. It is nil if that is not known.
// Only clocks count. The mark of a worker id tells of the clock of the node that wrote it,
// and one wrong clock must not stop the other nodes.
func (w *Workers) behind() error {
	if ahead, known := w.cfg.ClockAhead(); known && -ahead > maxBehind {
		return fmt.Errorf("%w: it is %v behind the clocks that the stores go by, expected at most %v", seq.ErrClockOff, -ahead.Round(time.Second), maxBehind)
	}
	return nil
}

// early says that it is the epoch of a layout that is wrong, and not this node's clock, if that is known:
// builds of before recorded such namespaces. seq.ErrBadLayout.
func (w *Workers) early(ns namespaces.Namespace, err error) error {
	if ahead, known := w.cfg.ClockAhead(); !known || ahead.Abs() > maxOff || !errors.Is(err, seq.ErrClockOff) {
		return err
	}
	return fmt.Errorf("%w: its epoch is %s, and nothing is handed out before: expected another namespace", seq.ErrBadLayout, ns.Layout.Epoch().UTC().Format(time.RFC3339))
}

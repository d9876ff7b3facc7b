package quorum

import (
	"math"
	"slices"
	"time"
)

// unheard stands for the clock of a store that has not told it.
const unheard = math.MinInt64

// heardClock keeps what a store's clock showed between sent and now, when its reply arrived. A build
// of the version before tells none. A reply that was long on its way, or waited for a process
// that was paused, tells less than an earlier one. Callers hold l.mu.
func (l *Leases) heardClock(s *storeLease, ms int64, sent, now time.Duration) {
	place := &l.clocks[s.index]
	if ms == 0 {
		place.Store(unheard)
		return
	}
	off := now - sent
	if place.Load() != unheard && off > s.clockOff+time.Duration(2*Rho*float64(now-s.clockAt)) {
		return
	}
	s.clockOff, s.clockAt = off, now
	place.Store(time.UnixMilli(ms).UnixNano() - int64(now))
}

// StoreTime returns the latest time that the clocks of W stores have reached, as their last
// replies told them: clocks of up to N-W stores may show anything. The clock of a store that is
// away counts as if it went on. It returns false while fewer than W stores have told their clocks.
// It takes no lock and allocates nothing.
func (l *Leases) StoreTime() (time.Time, bool) {
	c := l.now.Load()
	var all [MaxStores]int64
	known := 0
	for _, s := range c.stores {
		if at := l.clocks[s.index].Load(); at != unheard {
			all[known] = at
			known++
		}
	}
	if known < c.w {
		return time.Time{}, false
	}
	slices.Sort(all[:known])
	return time.Unix(0, all[known-c.w]+int64(l.cfg.Clock.Now())), true
}

// ClockOffsets returns by how much the clock of each store is ahead of StoreTime, by the name of
// the store; nil if that is not known.
func (l *Leases) ClockOffsets() map[string]time.Duration {
	now, known := l.StoreTime()
	if !known {
		return nil
	}
	out := map[string]time.Duration{}
	for _, s := range l.now.Load().stores {
		if at := l.clocks[s.index].Load(); at != unheard {
			out[s.store.Name] = time.Duration(at + int64(l.cfg.Clock.Now()) - now.UnixNano())
		}
	}
	return out
}

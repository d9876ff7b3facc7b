package quorum

import (
	"slices"
	"time"
)

// WorkerAhead bounds how far the mark of a snowflake worker id may lie beyond the clocks of the stores. It
// is enough for every window that a node asks for, and for clocks that are minutes apart. It is too little
// to spoil a worker id for long.
const WorkerAhead = time.Hour

// compareClocks takes in the clock of a store, told by a reply that arrived at now. The store read
// it between the sending and now. Callers hold Leases.mu.
func (s *storeLease) compareClocks(sent sentRenew, reply RenewReply, now time.Duration) {
	if reply.Time == 0 {
		return
	}
	at := sent.wall.Add((now - sent.at) / 2)
	s.ahead, s.timed = at.Sub(time.UnixMilli(reply.Time)), true
}

// ClockAhead returns how far this node's wall clock is ahead of the clocks of the stores that answered
// within the lease. It is the Middle of their differences. If known is false, fewer than W stores told
// their clocks.
func (l *Leases) ClockAhead() (ahead time.Duration, known bool) {
	now := int64(l.cfg.Clock.Now())
	l.mu.Lock()
	defer l.mu.Unlock()
	c, all := l.now.Load(), make([]time.Duration, 0, MaxStores)
	for _, s := range c.stores {
		if s.timed && now < l.sent[s.index].Load()+int64(l.term) {
			all = append(all, s.ahead)
		}
	}
	if len(all) < c.w {
		return 0, false
	}
	return Middle(all), true
}

// Middle sorts the differences of clocks, at least one, and returns their median. If their number is even,
// it returns the middle difference that is nearer to zero.
func Middle(all []time.Duration) time.Duration {
	slices.Sort(all)
	low, high := all[(len(all)-1)/2], all[len(all)/2]
	switch {
	case low > 0:
		return low
	case high < 0:
		return high
	case -low < high:
		return low
	}
	return high
}

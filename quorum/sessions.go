package quorum

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// SessionView is a session as the stores' last replies show it, this one included.
type SessionView struct {
	Session seq.Session
	Name    string
	Addr    string
	// FreeAt is when W stores will have let its leases end if it renews none of
	// them, on the Clock of the leases. The moment to try a takeover, not a
	// permission: the stores decide.
	FreeAt   time.Duration
	Attached uint32 // registers, at the store that has most
	Dead     bool   // gone from W stores; kept for a while so that no reader misses it
}

// keepDead is the time that a dead session stays in Sessions.
const keepDead = time.Minute

type presence uint8

const (
	unseen presence = iota
	present
	vanished
)

// sessionRecord is one session over all stores, guarded by Leases.mu.
type sessionRecord struct {
	info   SessionInfo
	at     [maxSlots]presence
	freeAt [maxSlots]time.Duration // valid unless unseen
	most   [maxSlots]uint32
	dead   bool
	since  time.Duration // of dead
}

// observe takes in the sessions that a store listed at now; changed if one came, went or
// moved. fresh is a new start of the store. Callers hold l.mu.
func (l *Leases) observe(s *storeLease, listed []SessionInfo, fresh bool, now time.Duration) (changed bool) {
	i := s.index
	if fresh {
		s.settledAt = now + l.cfg.Lease
	}
	here := make(map[seq.Session]bool, len(listed))
	for _, info := range listed {
		here[info.Session] = true
		r := l.sessions[info.Session]
		if r == nil {
			r = &sessionRecord{info: info}
			l.sessions[info.Session] = r
			changed = true
		}
		changed = changed || r.info.Name != info.Name || r.info.Addr != info.Addr
		r.info = info
		r.at[i], r.freeAt[i], r.most[i] = present, now+info.Remaining, info.Attached
	}
	for id, r := range l.sessions {
		if r.at[i] == present && !here[id] && now >= s.settledAt {
			r.at[i], r.freeAt[i], r.most[i] = vanished, min(r.freeAt[i], now), 0
		}
		if dead := r.gone(l.now.Load().w); dead != r.dead {
			r.dead, r.since, changed = dead, now, true
		}
		if r.dead && now >= r.since+keepDead && !r.fresh(now) {
			delete(l.sessions, id)
			changed = true
		}
	}
	return changed
}

// gone: W stores had it and let it go, or no store has it any more.
func (r *sessionRecord) gone(w int) bool {
	var n [vanished + 1]int
	for _, p := range r.at {
		n[p]++
	}
	return n[vanished] >= w || n[present] == 0
}

// fresh says whether some store may still keep leases of the session.
func (r *sessionRecord) fresh(now time.Duration) bool {
	for i, p := range r.at {
		if p == present && now < r.freeAt[i] {
			return true
		}
	}
	return false
}

// Sessions returns the sessions that the stores reported, in the order of their names.
func (l *Leases) Sessions() []SessionView {
	l.mu.Lock()
	defer l.mu.Unlock()
	views := make([]SessionView, 0, len(l.sessions))
	for _, r := range l.sessions {
		views = append(views, SessionView{Session: r.info.Session, Name: r.info.Name, Addr: r.info.Addr,
			FreeAt: l.freeAt(r), Attached: slices.Max(r.most[:]), Dead: r.dead})
	}
	slices.SortFunc(views, func(a, b SessionView) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Session, b.Session))
	})
	return views
}

// freeAt is the W-th smallest over the stores. A store that answered without the
// session is free of it; of one that never answered nothing is known. If that
// leaves fewer than W, the latest that is known. Callers hold l.mu.
func (l *Leases) freeAt(r *sessionRecord) time.Duration {
	const unknown = math.MaxInt64
	c := l.now.Load()
	times := make([]time.Duration, 0, MaxStores)
	for _, s := range c.stores {
		switch {
		case r.at[s.index] != unseen:
			times = append(times, r.freeAt[s.index])
		case s.answered:
			times = append(times, 0)
		default:
			times = append(times, unknown)
		}
	}
	slices.Sort(times)
	for k := c.w - 1; k >= 0; k-- {
		if times[k] != unknown {
			return times[k]
		}
	}
	return 0
}

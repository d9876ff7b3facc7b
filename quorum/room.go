package quorum

import "math/bits"

// heardRoom keeps whether a store has memory for more of exact spaces. Callers hold l.mu.
func (l *Leases) heardRoom(s *storeLease, full bool) {
	if full {
		l.full.Or(s.bit())
	} else {
		l.full.And(^s.bit())
	}
}

// Full reports whether fewer than W stores have memory for more UIDs and ids of exact spaces, by
// what they told last. One store alone is not waited for: the others go on without it.
func (l *Leases) Full() bool {
	c := l.now.Load()
	return bits.OnesCount64(l.full.Load()&c.mask) > c.n-c.w
}

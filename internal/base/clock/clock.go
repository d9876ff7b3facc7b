package clock

import (
	"sync"
	"time"
)

// Clock tells how much time has passed since some fixed moment in the past.
// Only differences between two readings of one Clock mean anything. Readings
// never decrease. Implementations are safe for concurrent use, do not block
// and do not fail.
type Clock interface {
	// Now is the time since the clock's own origin, in nanoseconds, never
	// negative.
	Now() time.Duration
}

// Boot returns the machine's clock: the time since boot, suspend included, on
// Linux. Elsewhere it is the time since this process first asked, on the
// monotonic clock of the Go runtime, which may stand still in suspend: good
// enough to develop on, not to hold leases on.
//
// Reading it costs one system call on Linux; read it once a batch.
func Boot() Clock { return bootClock{} }

// Manual is a clock that moves only when told to, for tests. The zero value
// stands at 0 and is ready for use. It is safe for concurrent use.
type Manual struct {
	mu  sync.Mutex // guards now
	now time.Duration
}

// NewManual returns a clock that stands at now. It panics if now is negative.
func NewManual(now time.Duration) *Manual {
	if now < 0 {
		panic("clock: a clock cannot start before its origin")
	}
	return &Manual{now: now}
}

// Now is where the clock was last moved to.
func (m *Manual) Now() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Advance moves the clock forward by d and returns the new reading. It panics
// if d is negative, since no Clock goes backwards.
func (m *Manual) Advance(d time.Duration) time.Duration {
	if d < 0 {
		panic("clock: a monotonic clock cannot be moved backwards")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now += d
	return m.now
}

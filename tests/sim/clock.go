package sim

import (
	"sync"
	"time"
)

// hostClock is what one machine takes for time. Its rate is off by what the run says; a
// paused host does not see it move. It never goes back.
type hostClock struct {
	w *world

	mu     sync.Mutex // guards all below
	rate   float64
	truth  time.Duration // true time at which the clock showed read
	read   time.Duration
	frozen bool
	shown  time.Duration // while frozen
	wall   time.Duration // by how much the wall clock is off
	ahead  time.Duration // the most that it ever was
	behind time.Duration // the least that it ever was ahead
}

func newHostClock(w *world, rate float64, origin time.Duration) *hostClock {
	return &hostClock{w: w, rate: rate, truth: w.now(), read: origin}
}

// running is the reading of a clock that nobody stopped. Needs c.mu.
func (c *hostClock) running() time.Duration {
	return c.read + time.Duration(float64(c.w.now()-c.truth)*c.rate)
}

// Now implements clock.Clock.
func (c *hostClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen {
		return c.shown
	}
	return c.running()
}

// real is the reading as it would be if the host were awake.
func (c *hostClock) real() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running()
}

// setRate changes the rate from now on.
func (c *hostClock) setRate(rate float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = c.running()
	c.truth, c.rate = c.w.now(), rate
}

func (c *hostClock) freeze(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if on && !c.frozen {
		c.shown = c.running()
	}
	c.frozen = on
}

// calendar is when runs begin, by the calendar: where virtual time starts, so that the SDK,
// which reads the system's clock for IDs, reads one that is right.
var calendar = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// Wall is the wall clock, which jumps.
func (c *hostClock) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return calendar.Add(c.w.now() + c.wall)
}

func (c *hostClock) jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall += by
	c.ahead, c.behind = max(c.ahead, c.wall), min(c.behind, c.wall)
}

// nearest is the least that the wall clock ever was ahead.
func (c *hostClock) nearest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.behind
}

// furthest is the most that the wall clock ever was ahead.
func (c *hostClock) furthest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead
}

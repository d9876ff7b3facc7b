// Package bubble runs tests in virtual time. Nothing but tests may import it.
package bubble

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// Test is synctest.Test. Under the race detector the bubble has one processor: with Go
// 1.26 its timers have one race context for all threads (runtime/time.go,
// unlockAndRun), and two of them that fire timers at once crash the detector, about once
// in ten runs of a test with many timers. Such a test cannot run beside parallel ones.
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if raceDetector {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	synctest.Test(t, f)
}

// Clock is the clock of a bubble, from 0 on: time passes while all in the bubble wait.
type Clock struct{ start time.Time }

// NewClock starts one; to be called inside the bubble.
func NewClock() Clock { return Clock{time.Now()} }

// Now is the time since NewClock.
func (c Clock) Now() time.Duration { return time.Since(c.start) }

//go:build !linux

package clock

import (
	"sync"
	"time"
)

// origin is one for all of the process, so that any two clocks agree.
var origin = sync.OnceValue(time.Now)

type bootClock struct{}

func (bootClock) Now() time.Duration { return time.Since(origin()) }

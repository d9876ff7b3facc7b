package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

type bootClock struct{}

// Now reads CLOCK_BOOTTIME. Every kernel that Go runs on has it. Should it
// fail all the same (a seccomp filter that forbids the call), the process must
// not go on with another clock: mixing two of them in one lease could make an
// expired lease look good.
func (bootClock) Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("clock: read CLOCK_BOOTTIME: " + err.Error())
	}
	return time.Duration(ts.Nano())
}

package clock

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestTheBootClockIsTheKernelsClockThatCountsSuspend(t *testing.T) {
	read := func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			t.Fatal(err)
		}
		return time.Duration(ts.Nano())
	}
	before := read()
	now := Boot().Now()
	after := read()
	if now < before || now > after {
		t.Errorf("Now() = %v, want between %v and %v", now, before, after)
	}
}

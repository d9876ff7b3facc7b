package daemon

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel may let timers of a daemon go off so much later, together with others; one that
// was not changed is usualSlack.
const (
	timerSlack = 300 * time.Microsecond
	usualSlack = 50 * time.Microsecond
)

// Slacken makes the program start again with another timer slack. Call it first in main. Go's monitor of
// its threads naps for 20 microseconds at a time while there is work. Each nap is a timer and a switch,
// which cost more than the calls that they watch. Only an exec changes the slack for all threads, because
// threads inherit it and Go starts some before main.
//
// A slack that somebody has chosen, such as TimerSlackNSec= of systemd, stays. SIGHUP is ignored from here
// until Main takes it, also by the program that starts again. Slacken ignores failures.
func Slacken() {
	signal.Ignore(syscall.SIGHUP) // until Main: it would end the program before that
	runtime.LockOSThread()        // the slack is a thread's
	defer runtime.UnlockOSThread()
	if now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || time.Duration(now) != usualSlack {
		return
	}
	self, err := os.Executable()
	if err != nil || unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0) != nil {
		return
	}
	if syscall.Exec(self, os.Args, os.Environ()) != nil {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(usualSlack), 0, 0, 0)
	}
}

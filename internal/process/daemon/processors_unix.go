//go:build unix

package daemon

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"syscall"
	"time"
)

const (
	// glance is the time between two changes of GOMAXPROCS.
	glance = 250 * time.Millisecond
	// Of the processors that a program has, so much must be in use to double them; and of half
	// of them, at most so much to halve them. They lie apart, so that a steady load ends changes.
	crowded, roomy = 0.85, 0.6
)

// FollowProcessors keeps GOMAXPROCS at what the program uses, until ctx ends: from 1 to what
// it is now. Each processor that Go has beyond those that its work fills is woken and sent to
// sleep for each message, which takes time from the other programs of the machine, and from
// this one. A GOMAXPROCS in the environment stands.
func FollowProcessors(ctx context.Context, log *slog.Logger) {
	most := runtime.GOMAXPROCS(0)
	if most == 1 || os.Getenv("GOMAXPROCS") != "" {
		return
	}
	log.Info("processors follow the load; GOMAXPROCS in the environment fixes them", "most", most)
	tick := time.NewTicker(glance)
	defer tick.Stop()
	now := most
	used, at := processorTime(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		u, t := processorTime(), time.Now()
		next := processors(now, most, (u-used).Seconds()/t.Sub(at).Seconds())
		used, at = u, t
		if next != now {
			log.Debug("processors", "now", next, "before", now)
			runtime.GOMAXPROCS(next)
			now = next
		}
	}
}

// processors returns the number of processors for a program that has now of them, and used so many of
// these.
func processors(now, most int, used float64) int {
	switch half := (now + 1) / 2; {
	case used > crowded*float64(now):
		return min(2*now, most)
	case used < roomy*float64(half):
		return half
	}
	return now
}

// processorTime is what this process used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

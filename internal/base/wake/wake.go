// Package wake is how goroutines wait: for a time, or to be told that there is something to do.
package wake

import (
	"context"
	"time"
)

// Signal wakes one goroutine. Any number of others may raise it. Several raises before it is taken count as
// one. Use New. It is safe for concurrent use.
type Signal struct{ c chan struct{} }

// New returns a Signal that is not raised.
func New() *Signal { return &Signal{c: make(chan struct{}, 1)} }

// Kick raises the signal. It does not block.
func (s *Signal) Kick() {
	select {
	case s.c <- struct{}{}:
	default:
	}
}

// C gives a value, and the signal is down again, once it is raised.
func (s *Signal) C() <-chan struct{} { return s.c }

// Clear puts the signal down.
func (s *Signal) Clear() {
	select {
	case <-s.c:
	default:
	}
}

// Wait ends once the signal is raised, which puts it down, or after d; false when ctx has
// ended.
func (s *Signal) Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-s.c:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// Sleep waits for d; false when ctx ended before.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

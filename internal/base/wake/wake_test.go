package wake

import (
	"context"
	"testing"
	"time"
)

func TestASignalCountsOnceUntilItIsTaken(t *testing.T) {
	s := New()
	s.Kick()
	s.Kick()
	if !s.Wait(t.Context(), time.Hour) {
		t.Error("it was not raised")
	}
	select {
	case <-s.C():
		t.Error("raised twice")
	default:
	}
	s.Kick()
	s.Clear()
	s.Clear()
	if begin := time.Now(); !s.Wait(t.Context(), time.Millisecond) || time.Since(begin) < time.Millisecond {
		t.Error("still raised after it was put down")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s.Wait(ctx, time.Hour) {
		t.Error("it waits after the end")
	}
	s.Kick()
	if s.Wait(ctx, 0) {
		t.Error("a signal is more than the end")
	}
}

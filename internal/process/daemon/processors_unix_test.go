//go:build unix

package daemon

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"
)

func TestProcessorsFollowWhatIsUsed(t *testing.T) {
	for _, test := range []struct {
		now, most int
		used      float64
		want      int
	}{
		{1, 2, 0.1, 1}, {1, 2, 0.8, 1}, {1, 2, 0.9, 2}, {1, 1, 1.1, 1},
		{2, 2, 2, 2}, {2, 2, 1.1, 2}, {2, 2, 0.61, 2}, {2, 2, 0.5, 1},
		{4, 6, 3.9, 6}, {6, 6, 1.7, 3}, {3, 6, 1.1, 2}, {8, 64, 7.5, 16}, {8, 64, 2.3, 4}, {8, 64, 2.5, 8},
	} {
		if got := processors(test.now, test.most, test.used); got != test.want {
			t.Errorf("%d of %d with %v used: got %d, want %d", test.now, test.most, test.used, got, test.want)
		}
	}
}

// TestASteadyLoadEndsChanges: whatever a program uses, at most so much as it has, it comes to
// rest.
func TestASteadyLoadEndsChanges(t *testing.T) {
	const most = 48
	for tenths := range 10*most + 1 {
		now := most
		for range 20 {
			now = processors(now, most, min(float64(tenths)/10, float64(now)))
		}
		if next := processors(now, most, min(float64(tenths)/10, float64(now))); next != now {
			t.Errorf("with %v used: %d, then %d", float64(tenths)/10, now, next)
		}
	}
}

func TestAnIdleProgramHasOneProcessor(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		FollowProcessors(ctx, slog.New(slog.DiscardHandler))
		close(ended)
	}()
	for late := time.Now().Add(30 * time.Second); runtime.GOMAXPROCS(0) > 1; time.Sleep(glance) {
		if time.Now().After(late) {
			t.Fatalf("has %d still", runtime.GOMAXPROCS(0))
		}
	}
	cancel()
	<-ended
}

func TestProcessorsOfTheEnvironmentStand(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	t.Setenv("GOMAXPROCS", "8")
	FollowProcessors(t.Context(), slog.New(slog.DiscardHandler)) // ends by itself
	if got := runtime.GOMAXPROCS(0); got != 8 {
		t.Errorf("has %d", got)
	}
}

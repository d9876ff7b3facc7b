package clock

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

func TestTheBootClockNeverGoesBackwards(t *testing.T) {
	c := Boot()
	last := c.Now()
	if last < 0 {
		t.Fatalf("Now() = %v, want 0 or more", last)
	}
	for range 10_000 {
		now := c.Now()
		if now < last {
			t.Fatalf("Now() = %v after %v", now, last)
		}
		last = now
	}
}

func TestTheBootClockMoves(t *testing.T) {
	c := Boot()
	start := c.Now()
	for deadline := time.Now().Add(20 * time.Second); c.Now() == start; {
		if time.Now().After(deadline) {
			t.Fatalf("the clock still stands at %v", start)
		}
		runtime.Gosched()
	}
}

func TestTwoBootClocksAreTheSameClock(t *testing.T) {
	a, b := Boot(), Boot()
	first, second, third := a.Now(), b.Now(), a.Now()
	if second < first || third < second {
		t.Errorf("readings %v, %v, %v are not in order", first, second, third)
	}
}

func TestAManualClockMovesOnlyWhenAdvanced(t *testing.T) {
	c := NewManual(5 * time.Second)
	if got, want := c.Now(), 5*time.Second; got != want {
		t.Errorf("Now() = %v, want %v", got, want)
	}
	if got, want := c.Advance(time.Second), 6*time.Second; got != want {
		t.Errorf("Advance(1s) = %v, want %v", got, want)
	}
	if got, want := c.Now(), 6*time.Second; got != want {
		t.Errorf("Now() = %v, want %v", got, want)
	}
}

func TestTheZeroManualClockStandsAtZero(t *testing.T) {
	var c Manual
	if got := c.Now(); got != 0 {
		t.Errorf("Now() = %v, want 0", got)
	}
}

func TestAManualClockRefusesToGoBackwards(t *testing.T) {
	for name, move := range map[string]func(){
		"Advance(-1)":   func() { new(Manual).Advance(-1) },
		"NewManual(-1)": func() { NewManual(-1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", name)
				}
			}()
			move()
		}()
	}
}

func TestAManualClockCanBeAdvancedFromManyGoroutines(t *testing.T) {
	var c Manual
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				c.Advance(time.Millisecond)
			}
		})
	}
	wg.Wait()
	if got, want := c.Now(), 800*time.Millisecond; got != want {
		t.Errorf("Now() = %v, want %v", got, want)
	}
}

package snowflake

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

var borrowing = Policy{Overflow: OverflowBorrow}

// inBubble runs f under a clock that moves only when all of the test sleeps.
func inBubble(t *testing.T, f func(t *testing.T, l Layout, now func() Tick)) {
	l := preset(t, "twitter")
	l.epoch = 0 // the bubble's clock starts in 2000
	bubble.Test(t, func(t *testing.T) {
		f(t, l, func() Tick {
			tick, err := l.TickAt(time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return tick
		})
	})
}

func next(t *testing.T, g *Generator) Parts {
	t.Helper()
	id, err := g.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.layout.Decode(id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestARememberedReadingIsNeverOlderThanItsAge(t *testing.T) {
	for _, age := range []time.Duration{time.Millisecond, 3 * time.Millisecond, 20 * time.Millisecond} {
		inBubble(t, func(t *testing.T, l Layout, now func() Tick) {
			g, err := New(l, 0, 0, 0, WithPolicy(borrowing), WithClock(SystemClock), WithClockAge(age))
			if err != nil {
				t.Fatal(err)
			}
			g.Extend(l.MaxTick())
			for i := range 400 {
				if got, at := next(t, g).Tick, now(); got > at || at-got > Tick(age.Milliseconds()) {
					t.Fatalf("ID %d, age %v: got tick %d at tick %d", i, age, got, at)
				}
				// The steps are no multiples of the age.
				time.Sleep(time.Duration(i%9) * 700 * time.Microsecond)
			}
			time.Sleep(time.Hour)
			if got, want := next(t, g).Tick, now(); got != want {
				t.Errorf("after an hour of silence: got tick %d, want %d", got, want)
			}
		})
	}
}

func TestBorrowersReadTheSystemClockNowAndThenAndOthersEachTime(t *testing.T) {
	const ids = 1000
	for _, tc := range []struct {
		name     string
		options  []Option
		min, max int64
	}{
		{"an age is given", []Option{WithPolicy(borrowing), WithClockAge(time.Hour)}, ids / rereadEvery, ids/rereadEvery + 2},
		{"a clock is given", []Option{WithPolicy(borrowing)}, ids, ids},
		{"others than borrowers", nil, ids, ids},
	} {
		l := preset(t, "twitter")
		var read atomic.Int64
		clock := func() int64 { read.Add(1); return l.epoch + 1000 }
		g, err := New(l, 0, 0, 0, append(tc.options, WithClock(clock))...)
		if err != nil {
			t.Fatal(err)
		}
		g.Extend(l.MaxTick())
		for range ids {
			next(t, g)
		}
		if got := read.Load(); got < tc.min || got > tc.max {
			t.Errorf("%s: %d IDs read the clock %d times, want %d to %d", tc.name, ids, got, tc.min, tc.max)
		}
	}
	l := preset(t, "twitter")
	g, err := New(l, 0, 0, 0, WithPolicy(borrowing))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := g.readings.age, DefaultClockAge; got != want {
		t.Errorf("age under borrow with the system clock: got %v, want %v", got, want)
	}
}

func TestAnExpiredReadingIsReadAgainAndLeavesNoTimerBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, l Layout, now func() Tick) {
		g, err := New(l, 0, 0, 0, WithPolicy(borrowing))
		if err != nil {
			t.Fatal(err)
		}
		g.Extend(l.MaxTick())
		first := next(t, g)
		if second := next(t, g); second.Tick != first.Tick || second.Sequence != first.Sequence+1 {
			t.Errorf("at the same moment: got %+v after %+v", second, first)
		}
		time.Sleep(DefaultClockAge)
		synctest.Wait()
		if g.readings.armed.Load() {
			t.Error("the timer runs on though nobody asks for IDs")
		}
		if _, ok := g.readings.remembered(1); ok {
			t.Error("an expired reading is still used")
		}
		if got := next(t, g); got.Tick != now() {
			t.Errorf("got tick %d, want %d", got.Tick, now())
		}
	})
}

func TestAClockThatOnlyMovesForwardIsNeverTakenForOneThatMovedBack(t *testing.T) {
	l := preset(t, "twitter")
	var ms atomic.Int64
	ms.Store(l.epoch + 1000)
	clock := func() int64 { return ms.Add(1) >> 3 }
	ms.Store((l.epoch + 1000) << 3)
	g, err := New(l, 0, 0, 999, WithPolicy(borrowing), WithClock(clock), WithClockAge(10*time.Microsecond))
	if err != nil {
		t.Fatal(err)
	}
	g.Extend(l.MaxTick())
	const callers, each = 6, 20_000
	got := make([][]ID, callers)
	var wg sync.WaitGroup
	for w := range callers {
		wg.Go(func() {
			ids := make([]ID, 100)
			for i := range each {
				n, err := 1, error(nil)
				if i%97 == 0 {
					n, err = g.NextN(context.Background(), ids)
				} else {
					ids[0], err = g.Next(context.Background())
				}
				if err != nil {
					t.Errorf("caller %d: %v", w, err)
					return
				}
				got[w] = append(got[w], ids[:n]...)
			}
		})
	}
	wg.Wait()
	seen := map[ID]bool{}
	for w, ids := range got {
		for i, id := range ids {
			if i > 0 && id <= ids[i-1] {
				t.Fatalf("caller %d: %d after %d", w, id, ids[i-1])
			}
			if seen[id] {
				t.Fatalf("id %d handed out twice", id)
			}
			seen[id] = true
		}
	}
}

func TestAClockThatMovedBackIsNoticedOnceTheReadingIsOld(t *testing.T) {
	l := preset(t, "twitter")
	inBubble(t, func(t *testing.T, _ Layout, _ func() Tick) {
		var back atomic.Int64
		start := time.Now()
		clock := func() int64 { return l.epoch + 5000 + time.Since(start).Milliseconds() - back.Load() }
		g, err := New(l, 0, 0, 0, WithPolicy(borrowing), WithClock(clock), WithClockAge(time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		g.Extend(l.MaxTick())
		next(t, g)
		back.Store(3000)
		next(t, g) // by the remembered reading
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if _, err := g.Next(context.Background()); !errors.Is(err, ErrClockRollback) {
			t.Errorf("3 s back: got %v, want %v", err, ErrClockRollback)
		}
	})
}

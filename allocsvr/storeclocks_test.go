package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// rated is a clock whose rate is off.
type rated struct {
	clock.Clock
	rate float64
}

func (c rated) Now() time.Duration { return time.Duration(float64(c.Clock.Now()) * c.rate) }

// timely is a node of exact sections, and callers whose clocks are right.
type timely struct {
	*testing.T
	*fleet
	node  *node
	asked int
	begun time.Time
}

// timely runs a test in virtual time with a node whose clock runs at that rate. before changes the
// stores before it starts.
func runTimely(t *testing.T, rate float64, before func(f *fleet), do func(x *timely)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		c := bubble.NewClock()
		f := newFleetOn(t, c, exactSpace(4))
		f.own, f.lease, f.log = rated{c, rate}, 10*time.Second, slog.New(slog.DiscardHandler)
		for _, s := range f.stores.Stores {
			s.SetClock(0)
		}
		before(f)
		x := &timely{T: t, fleet: f, node: f.start("a", 1, ""), begun: time.Now()}
		f.serving(x.node)
		do(x)
		for _, v := range x.node.Views() {
			if v.Epoch.Round != 1 {
				t.Errorf("section %d was dropped: it is owned under %v", v.Section, v.Epoch)
			}
		}
		x.node.kill()
		delete(f.nodes, "a")
	})
}

// request takes a number once for a request that was sent then.
func (x *timely) request(id string, sent time.Time) (uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	k := new(section.Taking)
	k.Set(x.node.Table, &x.stores.Mapping.Spaces[0], seq.PlainAll(7), nil)
	k.Name([]section.Request{{ID: id, Sent: sent}})
	k.Pass(x.node.BatchClock())
	k.Settle(ctx)
	if got := k.Out(); len(got.Faults) > 0 {
		return 0, got.Faults[0].Err
	}
	return k.Out().First[0], nil
}

// ask has callers notice nothing: each request gets the next number, and again when it is
// repeated.
func (x *timely) ask(what string) {
	x.Helper()
	x.asked++
	id, sent := fmt.Sprint(x.asked), time.Now()
	for _, age := range []string{"", ", again"} {
		if got, err := x.request(id, sent); err != nil || got != uint64(x.asked) {
			x.Errorf("%s, after %v%s: got %d, %v, want %d", what, time.Since(x.begun), age, got, err, x.asked)
		}
	}
	if x.asked > 1 { // one of nearly a minute ago
		if got, err := x.request(fmt.Sprint(x.asked-1), sent.Add(-time.Minute)); err != nil || got != uint64(x.asked-1) {
			x.Errorf("%s, after %v: the one before: got %d, %v, want %d", what, time.Since(x.begun), got, err, x.asked-1)
		}
	}
}

// Callers do not notice one store of three, whatever its clock shows, nor that its clock is set.
func TestTheClockOfOneStoreIsNotNoticed(t *testing.T) {
	for _, off := range []time.Duration{-time.Minute, -time.Hour, -1000 * time.Hour, 15 * time.Second, time.Hour, 1000 * time.Hour} {
		for wrong := range 3 {
			t.Run(fmt.Sprintf("store %d %v", wrong+1, off), func(t *testing.T) {
				runTimely(t, 1, func(f *fleet) { f.stores.Stores[wrong].SetClock(off) }, func(x *timely) {
					for range 30 {
						x.ask("from the start on")
						time.Sleep(time.Minute)
					}
					x.stores.Stores[wrong].SetClock(0)
					for range 3 {
						x.ask("set right")
						time.Sleep(time.Minute)
					}
					x.stores.Stores[(wrong+1)%3].SetClock(off)
					for range 3 {
						x.ask("another one")
						time.Sleep(time.Minute)
					}
				})
			})
		}
	}
}

// A clock that jumps to and from at any moment, and another store's later, is not noticed.
func TestTheClockOfAStoreThatJumpsIsNotNoticed(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	runTimely(t, 1, func(*fleet) {}, func(x *timely) {
		for i := range 600 {
			for k, s := range x.stores.Stores {
				if s.SetClock(0); k == i/200 && rnd.IntN(3) > 0 {
					s.SetClock(time.Duration((2*rnd.Float64() - 1) * float64(time.Hour)))
				}
			}
			time.Sleep(time.Duration(rnd.Int64N(int64(20 * time.Second))))
			x.ask("jumping")
			if i%200 == 199 { // all are right for a moment before the next one's turn
				x.stores.Stores[i/200].SetClock(0)
				time.Sleep(time.Minute)
			}
		}
	})
}

// A node whose clock is as far off as it may be takes the time from the stores, for as long as it
// owns a section. quorum has a day of it.
func TestARateWithinTheBoundIsNotNoticed(t *testing.T) {
	for _, rate := range []float64{0.99, 1.01} {
		runTimely(t, rate, func(*fleet) {}, func(x *timely) {
			for time.Since(x.begun) < 5*time.Hour {
				x.ask(fmt.Sprintf("at a rate of %v", rate))
				time.Sleep(7 * time.Minute)
			}
		})
	}
}

// Beside stores that do not tell their clocks a node counts time on from what it read first.
func TestStoresThatDoNotTellTheirClocksAreFollowedAsBefore(t *testing.T) {
	runTimely(t, 0.99, func(f *fleet) {
		for _, s := range f.stores.Stores[1:] {
			s.SetReticent()
		}
	}, func(x *timely) {
		for range 10 {
			x.ask("while the clock has lost little")
			time.Sleep(time.Minute)
		}
		time.Sleep(10 * time.Minute)
		if _, err := x.request("late", time.Now()); !errors.Is(err, exact.ErrTime) {
			t.Errorf("after 1 %% of 20 minutes: got %v, want %v", err, exact.ErrTime)
		}
	})
}

// Time that the stores have passed ends the window, by whichever clock of a minority it is later.
func TestAWindowEndsByTheTimeOfAQuorum(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		runTimely(t, 1, func(f *fleet) { f.stores.Stores[0].SetClock(off) }, func(x *timely) {
			sent := time.Now()
			x.ask("first")
			window := x.stores.Mapping.Spaces[0].Window
			time.Sleep(window - 5*time.Second)
			if got, err := x.request("1", sent); err != nil || got != 1 {
				t.Errorf("one store off by %v, within the window: got %d, %v, want 1", off, got, err)
			}
			time.Sleep(10 * time.Second)
			if _, err := x.request("1", sent); !errors.Is(err, exact.ErrExpired) {
				t.Errorf("one store off by %v, after the window: got %v, want %v", off, err, exact.ErrExpired)
			}
		})
	}
}

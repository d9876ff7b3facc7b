package console

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
)

// counted gathers nothing, and counts.
type counted struct {
	gathered, released atomic.Int64
	wanted             atomic.Pointer[topicSet] // of the last one
	takes              time.Duration
}

func (g *counted) gather(_ context.Context, want topicSet, _ *snapshot) *snapshot {
	g.gathered.Add(1)
	g.wanted.Store(&want)
	time.Sleep(g.takes)
	s := &snapshot{taken: time.Now()}
	for t := range want {
		if want[t] {
			s.parts[t] = partOf(s.taken, "x", nil)
		}
	}
	return s
}

func (g *counted) collector() *collector {
	return newCollector(g.gather, func() { g.released.Add(1) })
}

func wants(list ...topic) (set topicSet) {
	for _, t := range append(list, status) {
		set[t] = true
	}
	return set
}

// follow is a stream that lasts as long as ctx, or a thousand snapshots.
func follow(ctx context.Context, c *collector, want topicSet) (got int) {
	for after := uint64(0); got < 1000; got++ {
		s, err := c.next(ctx, want, after)
		if err != nil {
			return got
		}
		after = s.number
	}
	return got
}

func TestTheCollectorRunsOnlyWhileSomebodyWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &counted{}
		c := g.collector()
		time.Sleep(time.Hour)
		if n := g.gathered.Load(); n != 0 {
			t.Fatalf("%d snapshots while nobody watched", n)
		}
		for round := range 2 {
			before := g.gathered.Load()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+pace/2)
			got := follow(ctx, c, wants())
			cancel()
			if got != 11 {
				t.Errorf("round %d: %d snapshots in 10 s, want one a second", round, got)
			}
			time.Sleep(2 * linger)
			made := g.gathered.Load() - before
			if most := int64(11 + linger/pace); made > most {
				t.Errorf("round %d: %d snapshots made, want at most %d", round, made, most)
			}
			if n := g.released.Load(); n != int64(round+1) {
				t.Errorf("round %d: what it holds was let go %d times", round, n)
			}
			time.Sleep(time.Hour)
			if n := g.gathered.Load() - before; n != made {
				t.Errorf("round %d: %d more snapshots when nobody watched", round, n-made)
			}
		}
		c.close()
	})
}

func TestManyWhoWatchCostAsMuchAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &counted{}
		c := g.collector()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+pace/2)
		defer cancel()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if got := follow(ctx, c, wants()); got < 10 {
					t.Errorf("got %d snapshots in 10 s", got)
				}
			})
		}
		all.Wait()
		if n := g.gathered.Load(); n > 12 {
			t.Errorf("%d snapshots in 10 s for all, want one a second", n)
		}
		c.close()
	})
}

func TestAPollGetsWhatIsThereAndKeepsTheCollectorRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &counted{}
		c := g.collector()
		for range 20 {
			begun := time.Now()
			s, err := c.next(t.Context(), wants(), 0)
			if err != nil || time.Since(begun) > 0 || time.Since(s.taken) > pace {
				t.Fatalf("got %v after %v, data of %v ago", err, time.Since(begun), time.Since(s.taken))
			}
			time.Sleep(2 * time.Second)
		}
		if n := g.released.Load(); n != 0 {
			t.Errorf("it stopped %d times between polls", n)
		}
		c.close()
	})
}

func TestATopicIsCollectedWhileItIsWantedAndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &counted{}
		c := g.collector()
		ctx, cancel := context.WithCancel(t.Context())
		var other sync.WaitGroup
		other.Go(func() { follow(ctx, c, wants()) })
		time.Sleep(10*time.Second + pace/10)
		begun := time.Now()
		if s, err := c.next(t.Context(), wants(events), 0); err != nil || s.parts[events] == nil || time.Since(begun) > 0 {
			t.Errorf("got %v after %v", err, time.Since(begun))
		}
		time.Sleep(2 * linger)
		if g.wanted.Load()[events] {
			t.Error("events are collected when nobody wants them any more")
		}
		cancel()
		other.Wait()
		c.close()
	})
}

func TestACollectorThatIsClosedEndsAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &counted{takes: time.Second / 2}
		c := g.collector()
		var waiting sync.WaitGroup
		waiting.Go(func() { follow(context.Background(), c, wants()) })
		time.Sleep(5 * time.Second)
		c.close()
		waiting.Wait()
		if _, err := c.next(t.Context(), wants(), 0); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: got %v, want an error", err)
		}
		if g.released.Load() != 1 {
			t.Error("what it holds was not let go")
		}
	})
}

func TestRatesAreOfWhatBothSnapshotsKnow(t *testing.T) {
	at := time.Unix(1000, 0)
	before := totals{at: at, numbers: map[string]uint64{"a": 100, "b": 50, "c": 7}}
	now := totals{at: at.Add(2 * time.Second), numbers: map[string]uint64{"a": 300, "b": 10, "d": 999}}
	got := now.since(before)
	if got.Numbers != 100 || got.Calls != -1 {
		t.Errorf("got %+v, want 100 numbers a second, of the one node that both know, and no calls", got)
	}
	if got := now.since(totals{}); got.Numbers != -1 {
		t.Errorf("the first: got %+v, want nothing known", got)
	}
	before.calls = map[string]Calls{"router-1": {Ended: 10, Failed: 1}, "router-2": {Ended: 4}, "restarted": {Ended: 900}}
	now.calls = map[string]Calls{"router-1": {Ended: 30, Failed: 5}, "router-2": {Ended: 10}, "restarted": {Ended: 2}, "new": {Ended: 50}}
	if got := now.since(before); got.Calls != 13 || got.Errors != 2 || got.P99 != -1 {
		t.Errorf("got %+v, want 13 calls and 2 errors a second, of the two routers that both know, none of them timed", got)
	}
	slow, quick := telemetry.NewBuckets([]float64{1, 2}, []uint64{0, 1, 0}), telemetry.NewBuckets([]float64{1, 2}, []uint64{99, 0, 0})
	now.calls = map[string]Calls{"router-1": {Ended: 110, Took: quick}, "router-2": {Ended: 5, Took: slow}}
	if got := now.since(before); got.P50 > 1000 || got.P99 < 990 || got.P99 > 1100 {
		t.Errorf("got %+v, want the median of a hundred calls of both routers below 1 s, and p99 at its end", got)
	}
}

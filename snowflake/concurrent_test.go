package snowflake

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestConcurrentCallersNeverShareAnID(t *testing.T) {
	l := preset(t, "twitter")
	for _, p := range allPolicies() {
		t.Run(p.Overflow.String()+" "+p.rollbackText(), func(t *testing.T) {
			var ms atomic.Int64
			ms.Store(l.epoch + 1000)
			// Every fourth reading moves the clock, sometimes back.
			clock := func() int64 {
				now := ms.Add(1) >> 2 << 2
				if now%64 == 0 {
					ms.Add(-3)
				}
				return now
			}
			sleep := func(ctx context.Context, d time.Duration) error {
				ms.Add(max(d.Milliseconds(), 1))
				return nil
			}
			g, err := New(l, 0, 0, 999, WithPolicy(p), WithClock(clock), WithSleeper(sleep))
			if err != nil {
				t.Fatal(err)
			}
			all, sealed := hammer(t, g)
			slices.Sort(all)
			for i, id := range all {
				if i > 0 && id == all[i-1] {
					t.Fatalf("id %d handed out twice", id)
				}
			}
			if len(all) == 0 {
				t.Fatal("nothing handed out")
			}
			if got, want := Tick(all[len(all)-1]>>22), sealed; got != want {
				t.Errorf("largest tick handed out: got %d, want the sealed one, %d", got, want)
			}
			if first := Tick(all[0] >> 22); first <= 999 {
				t.Errorf("smallest tick handed out: got %d, want above the floor 999", first)
			}
		})
	}
}

// hammer uses g from many goroutines while its window grows, and seals it while
// they still run.
func hammer(t *testing.T, g *Generator) (all []ID, sealed Tick) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // guards all
		half sync.WaitGroup
	)
	half.Add(6)
	for w := range 6 {
		wg.Go(func() {
			var mine []ID
			ids := make([]ID, 700)
			for i := range 400 {
				if i == 200 {
					half.Done()
				}
				g.Extend(g.Last() + 20)
				n, err := 0, error(nil)
				if (i+w)%8 == 0 {
					n, err = g.NextN(context.Background(), ids)
				} else if ids[0], err = g.Next(context.Background()); err == nil {
					n = 1
				}
				mine = append(mine, ids[:n]...)
				if errors.Is(err, ErrTimeExhausted) || errors.Is(err, ErrBeforeEpoch) || errors.Is(err, ErrWaitEnded) {
					t.Errorf("worker %d: %v", w, err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
		})
	}
	half.Wait()
	sealed = g.Seal()
	wg.Wait()
	return all, sealed
}

func TestClaimsAtTheSameMomentTakeDifferentIDs(t *testing.T) {
	const callers, each = 4, 100_000
	l := preset(t, "twitter")
	c := at(l, 1000, 0)
	g := newGenerator(t, l, c, 999, l.MaxTick(), WithPolicy(Policy{Overflow: OverflowBorrow}))
	ids := make([]ID, callers*each)
	var wg sync.WaitGroup
	for mine := range slices.Chunk(ids, each) {
		wg.Go(func() {
			for i := range mine {
				var err error
				if mine[i], err = g.Next(context.Background()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(ids)
	for i, id := range ids {
		// No ID twice and, since all were borrowed one after another, none left out.
		want := ID(1000+i/4096)<<22 | ID(i%4096)
		if id != want {
			t.Fatalf("id %d in order: got %d, want %d", i, id, want)
		}
	}
}

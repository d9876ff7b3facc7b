package snowflake

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// handClock stands still until moved; sleeping moves it.
type handClock struct{ ms int64 }

func (c *handClock) now() int64 { return c.ms }

func (c *handClock) sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.ms += max(d.Milliseconds(), 1)
	return nil
}

// at returns a clock at the beginning of a tick, moved by ms.
func at(l Layout, tick Tick, ms int64) *handClock {
	return &handClock{l.epoch + int64(tick)*l.unit + ms}
}

func newGenerator(t testing.TB, l Layout, c *handClock, floor, confirmed Tick, options ...Option) *Generator {
	t.Helper()
	options = append([]Option{WithClock(c.now), WithSleeper(c.sleep)}, options...)
	g, err := New(l, 0, 0, floor, options...)
	if err != nil {
		t.Fatal(err)
	}
	g.Extend(confirmed)
	return g
}

func wantNext(t *testing.T, g *Generator, want ID) {
	t.Helper()
	if got, err := g.Next(context.Background()); err != nil || got != want {
		t.Fatalf("next: got %d, %v, want %d", got, err, want)
	}
}

func wantRefused(t *testing.T, g *Generator, want error) {
	t.Helper()
	if got, err := g.Next(context.Background()); !errors.Is(err, want) || got != 0 {
		t.Fatalf("next: got %d, %v, want %v", got, err, want)
	}
}

func parts(tick Tick, sequence uint64) ID { return ID(tick<<22) | ID(sequence) }

func TestTwittersVectors(t *testing.T) {
	l := preset(t, "twitter")
	c := at(l, 1, 0)
	g := newGenerator(t, l, c, 0, 1000)
	wantNext(t, g, 4194304)
	wantNext(t, g, 4194305)
	c.ms--
	wantRefused(t, g, ErrClockRollback)
	c.ms += 2
	wantNext(t, g, 2*4194304)
}

func TestWorkerAndDatacenterStandInEveryID(t *testing.T) {
	l := preset(t, "twitter")
	c := at(l, 367597485448, 0)
	g, err := New(l, 11, 26, 367597485440, WithClock(c.now))
	if err != nil {
		t.Fatal(err)
	}
	g.Extend(l.MaxTick())
	wantNext(t, g, 1541815603606036480)
	if g.Layout() != l {
		t.Errorf("layout: got %s, want %s", g.Layout(), l)
	}
}

func TestAGeneratorOutOfRangeIsNotMade(t *testing.T) {
	l := preset(t, "twitter")
	for _, tc := range []struct {
		datacenter Datacenter
		worker     Worker
		floor      Tick
		want       error
	}{
		{32, 0, 0, ErrFieldRange}, {0, 32, 0, ErrFieldRange}, {0, 0, l.MaxTick() + 1, ErrTimeExhausted},
		{31, 31, l.MaxTick(), nil},
	} {
		if _, err := New(l, tc.datacenter, tc.worker, tc.floor); !errors.Is(err, tc.want) {
			t.Errorf("datacenter %d worker %d floor %d: got %v, want %v", tc.datacenter, tc.worker, tc.floor, err, tc.want)
		}
	}
}

func TestWithoutAWindowNothingIsHandedOut(t *testing.T) {
	l := preset(t, "twitter")
	for _, p := range allPolicies() {
		for _, tick := range []Tick{0, 99, 100, 101, l.MaxTick()} {
			g := newGenerator(t, l, at(l, tick, 0), 100, 0, WithPolicy(p))
			wantRefused(t, g, ErrNoWindow)
			if g.Confirmed() != 100 || g.Last() != 100 {
				t.Errorf("fresh generator: confirmed %d, last %d, want 100, 100", g.Confirmed(), g.Last())
			}
		}
	}
}

func TestOnlyTicksOfTheWindowAreHandedOut(t *testing.T) {
	l := preset(t, "twitter")
	c := at(l, 100, 0)
	g := newGenerator(t, l, c, 100, 102, WithPolicy(Policy{Overflow: OverflowRefuse}))
	wantRefused(t, g, ErrOverflow) // tick 100 belongs to an earlier holder
	c.ms++
	wantNext(t, g, parts(101, 0))
	c.ms++
	wantNext(t, g, parts(102, 0))
	c.ms++
	wantRefused(t, g, ErrNoWindow)
	g.Extend(101) // late and lower: nothing
	wantRefused(t, g, ErrNoWindow)
	g.Extend(103)
	wantNext(t, g, parts(103, 0))
}

func TestAJumpFarAheadLeavesNoTraceOnceTheClockIsRight(t *testing.T) {
	l := preset(t, "twitter")
	c := at(l, 101, 0)
	g := newGenerator(t, l, c, 100, 3000)
	wantNext(t, g, parts(101, 0))
	c.ms += 365 * 24 * 3600 * 1000
	wantRefused(t, g, ErrNoWindow)
	c.ms -= 365 * 24 * 3600 * 1000
	wantNext(t, g, parts(101, 1))
}

func TestAFullTickIsMetByPolicy(t *testing.T) {
	l, err := ParseLayout("time:40,worker:10,sequence:2;epoch=1000")
	if err != nil {
		t.Fatal(err)
	}
	id := func(tick Tick, sequence uint64) ID { return ID(tick<<12) | ID(sequence) }
	full := func(o Overflow) (*Generator, *handClock) {
		c := at(l, 50, 0)
		g := newGenerator(t, l, c, 0, 51, WithPolicy(Policy{Overflow: o}))
		for i := range uint64(4) {
			wantNext(t, g, id(50, i))
		}
		return g, c
	}
	g, c := full(OverflowWait)
	wantNext(t, g, id(51, 0))
	if c.ms != 1051 {
		t.Errorf("clock after the wait: got %d, want 1051", c.ms)
	}
	g, c = full(OverflowRefuse)
	wantRefused(t, g, ErrOverflow)
	c.ms++
	wantNext(t, g, id(51, 0))
	g, c = full(OverflowBorrow)
	for i := range uint64(4) {
		wantNext(t, g, id(51, i))
	}
	wantRefused(t, g, ErrNoWindow)
	if c.ms != 1050 {
		t.Errorf("clock after borrowing: got %d, want 1050", c.ms)
	}
	c.ms++ // what was borrowed is not a clock that moved back
	g.Extend(52)
	wantNext(t, g, id(52, 0))
}

func TestAWaitEndsWithTheContext(t *testing.T) {
	l := preset(t, "twitter")
	c := at(l, 1, 0)
	g := newGenerator(t, l, c, 0, 1000)
	ids := make([]ID, 4096)
	if n, err := g.NextN(context.Background(), ids); n != 4096 || err != nil {
		t.Fatalf("a whole tick: got %d, %v", n, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := g.Next(ctx)
	if !errors.Is(err, ErrWaitEnded) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v and %v", err, ErrWaitEnded, context.Canceled)
	}
}

func TestTheTimerOfTheDefaultSleeperHeedsTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := sleepTimer(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if err := sleepTimer(context.Background(), time.Nanosecond); err != nil {
		t.Errorf("got %v, want none", err)
	}
}

func TestAnExhaustedLayoutRefusesAndNeverGoesNegative(t *testing.T) {
	for _, name := range PresetNames() {
		for _, p := range allPolicies() {
			l := preset(t, name)
			c := at(l, l.MaxTick(), 0)
			g := newGenerator(t, l, c, l.MaxTick()-1, l.MaxTick()+1000, WithPolicy(p))
			id, err := g.Next(context.Background())
			if err != nil || id < 0 {
				t.Fatalf("%s %+v: last tick: got %d, %v", name, p, id, err)
			}
			ids := make([]ID, 10000)
			n, err := g.NextN(context.Background(), ids)
			if n != int(l.MaxSequence()) || !errors.Is(err, ErrTimeExhausted) {
				t.Errorf("%s %+v: rest of the last tick: got %d, %v, want %d, %v", name, p, n, err, l.MaxSequence(), ErrTimeExhausted)
			}
			for _, id := range ids[:n] {
				if id < 0 {
					t.Fatalf("%s: negative id %d", name, id)
				}
			}
			for _, later := range []int64{l.unit, 10 * l.unit, 365 * 24 * 3600 * 1000} {
				c.ms = l.Exhausted().UnixMilli() + later
				wantRefused(t, g, ErrTimeExhausted)
				fresh := newGenerator(t, l, c, 0, l.MaxTick(), WithPolicy(p))
				wantRefused(t, fresh, ErrTimeExhausted)
			}
		}
	}
}

func TestBeforeTheEpochNothingIsHandedOut(t *testing.T) {
	l := preset(t, "baidu")
	for _, p := range allPolicies() {
		g := newGenerator(t, l, at(l, 0, -1), 0, 1000, WithPolicy(p))
		wantRefused(t, g, ErrBeforeEpoch)
	}
}

func TestSealingEndsIssuingAtTheLastTickUsed(t *testing.T) {
	l := preset(t, "twitter")
	c := at(l, 7, 0)
	g := newGenerator(t, l, c, 5, 1000)
	wantNext(t, g, parts(7, 0))
	for range 2 {
		if got := g.Seal(); got != 7 {
			t.Errorf("seal: got %d, want 7", got)
		}
	}
	g.Extend(2000)
	c.ms++
	wantRefused(t, g, ErrSealed)
	if got := g.Last(); got != 7 {
		t.Errorf("last: got %d, want 7", got)
	}
	next := newGenerator(t, l, c, 7, 1000)
	wantNext(t, next, parts(8, 0))
	unused := newGenerator(t, l, c, 5, 1000)
	if got := unused.Seal(); got != 5 {
		t.Errorf("seal of a generator never used: got %d, want its floor 5", got)
	}
}

func TestABatchIsOneStepAndKnowsItsRuns(t *testing.T) {
	l, err := ParseLayout("time:39,sequence:2,worker:3;epoch=0")
	if err != nil {
		t.Fatal(err)
	}
	c := at(l, 1, 0)
	g, err := New(l, 0, 5, 0, WithClock(c.now), WithPolicy(Policy{Overflow: OverflowBorrow}))
	if err != nil {
		t.Fatal(err)
	}
	g.Extend(3)
	if _, err := g.Next(context.Background()); err != nil {
		t.Fatal(err)
	}
	b, err := g.Take(context.Background(), 6)
	if err != nil || b.Len() != 6 {
		t.Fatalf("take 6: got %d, %v", b.Len(), err)
	}
	id := func(tick, sequence ID) ID { return tick<<5 | sequence<<3 | 5 }
	wantRuns := []Run{{id(1, 1), id(1, 3), 8}, {id(2, 0), id(2, 2), 8}}
	var runs []Run
	for r := range b.Runs() {
		runs = append(runs, r)
	}
	if d := cmp.Diff(wantRuns, runs); d != "" {
		t.Errorf("runs (-want +got):\n%s", d)
	}
	want := []ID{1, id(1, 1), id(1, 2), id(1, 3), id(2, 0), id(2, 1), id(2, 2)}
	if d := cmp.Diff(want, b.AppendTo([]ID{1})); d != "" {
		t.Errorf("ids (-want +got):\n%s", d)
	}
	for i := range b.Len() {
		if b.At(i) != want[i+1] {
			t.Errorf("id %d: got %d, want %d", i, b.At(i), want[i+1])
		}
	}
	for range b.Runs() {
		break
	}
	if b, err := g.Take(context.Background(), 100); err != nil || b.Len() != 5 {
		t.Errorf("take past the window: got %d, %v, want its last 5", b.Len(), err)
	}
	if _, err := g.Take(context.Background(), 0); !errors.Is(err, ErrFieldRange) {
		t.Errorf("take 0: got %v, want %v", err, ErrFieldRange)
	}
}

func TestAskingABatchForAnIDItLacksPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Batch{}.At(0)
}

func TestHandingOutNeedsNoMemory(t *testing.T) {
	l := preset(t, "twitter")
	c := at(l, 1, 0)
	g := newGenerator(t, l, c, 0, l.MaxTick(), WithPolicy(Policy{Overflow: OverflowBorrow}))
	ctx, ids := context.Background(), make([]ID, 5000)
	got := testing.AllocsPerRun(100, func() {
		if _, err := g.Next(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := g.NextN(ctx, ids); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Take(ctx, 5000); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("allocations: got %v, want 0", got)
	}
}

package load

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

func TestCallersThatCallAgainAtOnceAreCountedInTheMeasuredTimeOnly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		cfg := Config{Callers: 4, Warmup: time.Second, Duration: 2 * time.Second, PerCall: 1}
		var phases []Phase
		got, err := Run(t.Context(), cfg, func(context.Context, int) (int, error) {
			time.Sleep(10 * time.Millisecond)
			return 3, nil
		}, func(p Phase) { phases = append(phases, p) })
		if err != nil {
			t.Fatal(err)
		}
		if got.Calls != 800 || got.Numbers != 2400 || got.Rate != 1200 || got.CallRate != 400 || got.Seconds != 2 {
			t.Errorf("got %+v, want 800 calls with 2,400 numbers in 2 s", got)
		}
		if got.TotalNumbers != 3600 {
			t.Errorf("got %d numbers over all, want 3,600", got.TotalNumbers)
		}
		if len(phases) != 2 || phases[0] != Began || phases[1] != Over {
			t.Errorf("got phases %v", phases)
		}
		for name, us := range map[string]float64{"min": got.Latency.Min, "p50": got.Latency.P50, "p99": got.Latency.P99, "max": got.Latency.Max} {
			if math.Abs(us-10_000) > 20 {
				t.Errorf("%s is %v µs, want 10,000", name, us)
			}
		}
	})
}

func TestASampleIsTimedAndAllCallsAreCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		cfg := Config{Callers: 4, Warmup: time.Second, Duration: 2 * time.Second, PerCall: 1, Sample: 16}
		var phases []Phase
		got, err := Run(t.Context(), cfg, func(context.Context, int) (int, error) {
			time.Sleep(10*time.Millisecond + 1) // no call ends at the very moment at which the measured time does
			return 3, nil
		}, func(p Phase) { phases = append(phases, p) })
		if err != nil {
			t.Fatal(err)
		}
		if got.Calls != 800 || got.Numbers != 2400 || got.Seconds != 2 || got.TotalNumbers != 3*4*300 {
			t.Errorf("got %+v, want 800 calls with 2,400 numbers in 2 s", got)
		}
		if got.Timed < 45 || got.Timed > 55 || math.Abs(got.Latency.P50-10_000) > 20 || math.Abs(got.Latency.P99-10_000) > 20 {
			t.Errorf("got %d timed with %+v, want one in 16 of 800 with 10,000 µs", got.Timed, got.Latency)
		}
		if len(phases) != 2 || phases[0] != Began || phases[1] != Over {
			t.Errorf("got phases %v", phases)
		}
	})
}

func TestASampledRunThatIsCutShortTellsWhatItSaw(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		calls := 0
		got, err := Run(ctx, Config{Callers: 1, Duration: time.Hour, PerCall: 1, Sample: 2}, func(ctx context.Context, _ int) (int, error) {
			if calls++; calls == 3 {
				return 0, errors.New("no")
			}
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(30 * time.Millisecond):
				return 1, nil
			}
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Calls != 33 || got.Failed != 1 || got.Seconds != 1 {
			t.Errorf("got %d calls, %d failed in %v s, want 33, 1 and 1", got.Calls, got.Failed, got.Seconds)
		}
	})
}

func TestAStallIsFeltByAllCallsThatWereDueInIt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		cfg := Config{Callers: 1, Duration: 10 * time.Second, Rate: 100, PerCall: 1}
		calls := 0
		got, err := Run(t.Context(), cfg, func(context.Context, int) (int, error) {
			if calls++; calls == 100 {
				time.Sleep(time.Second)
			}
			return 1, nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Calls != 1000 || got.Behind {
			t.Errorf("got %d calls, behind %v, want 1,000 and false", got.Calls, got.Behind)
		}
		// One call stalled for a second; 100 of 1,000 were due meanwhile, evenly spread.
		if got.Latency.P99 < 850_000 || got.Latency.P50 > 1000 {
			t.Errorf("got p50 %v and p99 %v µs, want about 0 and 900,000", got.Latency.P50, got.Latency.P99)
		}
	})
}

func TestARateThatCannotBeKeptIsTold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		cfg := Config{Callers: 2, Duration: 10 * time.Second, Rate: 1000, PerCall: 10}
		got, err := Run(t.Context(), cfg, func(context.Context, int) (int, error) {
			time.Sleep(40 * time.Millisecond)
			return 10, nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Behind || got.Latency.Max < 4e6 {
			t.Errorf("got behind %v, max %v µs, want true and seconds", got.Behind, got.Latency.Max)
		}
	})
}

func TestErrorsAreCountedByKindAndHaveNoLatency(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		cfg := Config{Callers: 1, Duration: time.Second, PerCall: 1, Timeout: 50 * time.Millisecond,
			Code: func(err error) string {
				if errors.Is(err, context.DeadlineExceeded) {
					return "DEADLINE"
				}
				return "OTHER"
			}}
		calls := 0
		got, err := Run(t.Context(), cfg, func(ctx context.Context, _ int) (int, error) {
			switch calls++; calls {
			case 1:
				<-ctx.Done()
				return 0, ctx.Err()
			case 2:
				time.Sleep(50 * time.Millisecond)
				return 0, errors.New("no")
			}
			time.Sleep(100 * time.Millisecond)
			return 1, nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Calls != 9 || got.Failed != 2 || got.Errors["DEADLINE"] != 1 || got.Errors["OTHER"] != 1 {
			t.Errorf("got %+v", got)
		}
		if got.Latency.Min < 99_000 {
			t.Errorf("the least latency is %v µs: a failed call was counted", got.Latency.Min)
		}
	})
}

func TestARunThatIsCutShortTellsWhatItSaw(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		cfg := Config{Callers: 1, Duration: time.Hour, PerCall: 1}
		got, err := Run(ctx, cfg, func(ctx context.Context, _ int) (int, error) {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(30 * time.Millisecond):
				return 1, nil
			}
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Calls != 33 || got.Failed != 0 || got.Seconds != 1 {
			t.Errorf("got %d calls, %d failed in %v s, want 33, 0 and 1", got.Calls, got.Failed, got.Seconds)
		}
	})
}

func TestALoadThatCannotBeIsRefusedByName(t *testing.T) {
	good := Config{Callers: 1, Duration: time.Second, PerCall: 1}
	tests := []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"no callers", func(c *Config) { c.Callers = 0 }, "0 callers"},
		{"too many callers", func(c *Config) { c.Callers = MaxCallers + 1 }, "callers"},
		{"no duration", func(c *Config) { c.Duration = 0 }, "duration 0s"},
		{"a negative warm-up", func(c *Config) { c.Warmup = -1 }, "warm-up"},
		{"a negative rate", func(c *Config) { c.Rate = -1 }, "rate -1"},
		{"no rate at all", func(c *Config) { c.Rate = math.NaN() }, "rate NaN"},
		{"empty calls", func(c *Config) { c.PerCall = 0 }, "0 numbers a call"},
		{"a negative sample", func(c *Config) { c.Sample = -1 }, "one call in -1"},
		{"a negative timeout", func(c *Config) { c.Timeout = -1 }, "timeout"},
	}
	for _, test := range tests {
		cfg := good
		test.change(&cfg)
		_, err := Run(t.Context(), cfg, func(context.Context, int) (int, error) { t.Error("called"); return 0, nil }, nil)
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want ErrConfig with %q", test.name, err, test.want)
		}
	}
}

// shares counts how often each UID is drawn.
func shares(t *testing.T, cfg UserConfig) map[seq.UID]int {
	t.Helper()
	u, err := NewUsers(cfg)
	if err != nil {
		t.Fatal(err)
	}
	got := map[seq.UID]int{}
	d := u.Caller(0)
	for range 1 << 16 {
		got[d.One()]++
	}
	return got
}

func TestUsersAreDrawnAsTheDistributionSays(t *testing.T) {
	const uids, first = 2000, 1 << 40
	cfg := UserConfig{UIDs: uids, First: first, Callers: 3, Longest: 1}
	for _, test := range []struct {
		dist      Dist
		low, high float64 // share of the most often called two UIDs
		all       bool
	}{
		{Uniform, 0.0005, 0.002, true}, {Zipf, 0.15, 0.6, false}, {Hot, 0.85, 0.95, false},
	} {
		cfg.Dist = test.dist
		got := shares(t, cfg)
		top := float64(got[first]+got[first+1]) / (1 << 16)
		if top < test.low || top > test.high {
			t.Errorf("%s: the first two UIDs have %.4f of the calls, want %v to %v", test.dist, top, test.low, test.high)
		}
		for uid := range got {
			if uid < first || uid >= first+uids {
				t.Fatalf("%s: drew %d, outside of the range", test.dist, uid)
			}
		}
		if test.all && len(got) != uids {
			t.Errorf("%s: drew %d of %d UIDs", test.dist, len(got), uids)
		}
	}
}

func TestScatteredUsersAreDistinctAndTheSameEachTime(t *testing.T) {
	cfg := UserConfig{UIDs: 1000, Callers: 1, Longest: 1, Scatter: true, Dist: Uniform}
	a, b := shares(t, cfg), shares(t, cfg)
	if len(a) != 1000 || len(b) != 1000 {
		t.Fatalf("drew %d and %d UIDs, want 1,000", len(a), len(b))
	}
	small := 0
	for uid, n := range a {
		if b[uid] != n {
			t.Fatalf("UID %d was drawn %d times, then %d times", uid, n, b[uid])
		}
		if uid < 1<<32 {
			small++
		}
	}
	if small > 2 {
		t.Errorf("%d of 1,000 UIDs are below 2^32: not scattered", small)
	}
}

func TestABatchHasAsManyAsAskedForAlsoAtTheEndOfTheDraws(t *testing.T) {
	u, err := NewUsers(UserConfig{UIDs: 10, Callers: 1, Longest: 1000, Dist: Uniform})
	if err != nil {
		t.Fatal(err)
	}
	d := u.Caller(0)
	for i := range 200 {
		if got := d.Batch(1000); len(got) != 1000 {
			t.Fatalf("batch %d has %d", i, len(got))
		}
	}
}

func TestUsersThatCannotBeAreRefusedByName(t *testing.T) {
	good := UserConfig{UIDs: 1, Callers: 1, Longest: 1, Dist: Uniform}
	for name, test := range map[string]struct {
		change func(*UserConfig)
		want   error
	}{
		"no uids":               {func(c *UserConfig) { c.UIDs = 0 }, ErrConfig},
		"too many uids":         {func(c *UserConfig) { c.UIDs = MaxUIDs + 1 }, ErrConfig},
		"past the last uid":     {func(c *UserConfig) { c.First, c.UIDs = math.MaxUint64, 2 }, ErrConfig},
		"an unknown distribute": {func(c *UserConfig) { c.Dist = "gauss" }, ErrDist},
		"too long lists":        {func(c *UserConfig) { c.Longest = 1 << 20 }, ErrConfig},
	} {
		cfg := good
		test.change(&cfg)
		if _, err := NewUsers(cfg); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
	if _, err := ParseDist("gauss"); !errors.Is(err, ErrDist) || !strings.Contains(err.Error(), `"gauss"`) {
		t.Errorf("got %v", err)
	}
}

func TestOfManyUsersThatAreCalledAlikeAShareIsWatched(t *testing.T) {
	for _, scatter := range []bool{false, true} {
		u, err := NewUsers(UserConfig{UIDs: 1_000_000, First: 1 << 40, Scatter: scatter, Callers: 1, Longest: 1, Dist: Uniform})
		if err != nil {
			t.Fatal(err)
		}
		r, d := NewRising(u), u.Caller(0)
		for range 100_000 {
			m := r.Before(d.One())
			r.After(m, seq.Seq(m.top+1), seq.Seq(m.top+1))
		}
		if checked, broken, _ := r.Verdict(); checked < 50 || checked > 500 || broken != 0 {
			t.Errorf("scattered %v: %d of 100,000 calls were checked, %d broken, want about 190 and none", scatter, checked, broken)
		}
	}
}

func TestRisingSeesWhatFallsAndLetsOverlapsPass(t *testing.T) {
	u, err := NewUsers(UserConfig{UIDs: 2, Callers: 1, Longest: 1, Dist: Uniform})
	if err != nil {
		t.Fatal(err)
	}
	r := NewRising(u)
	take := func(uid seq.UID, first, last seq.Seq) { r.After(r.Before(uid), first, last) }
	take(0, 1, 1)
	take(0, 2, 5)
	early, late := r.Before(0), r.Before(0) // two calls at once may end in either order
	r.After(late, 7, 7)
	r.After(early, 6, 6)
	take(99, 1, 1) // not of the sample
	take(99, 1, 1)
	take(1, 1, 1)
	if checked, broken, first := r.Verdict(); checked != 5 || broken != 0 || first != nil {
		t.Fatalf("got %d checked, %d broken, %v, want 5, 0 and none", checked, broken, first)
	}
	take(0, 7, 7) // a duplicate
	take(0, 3, 3) // a fall
	checked, broken, first := r.Verdict()
	if checked != 7 || broken != 2 || first == nil || *first != (Fall{UID: 0, Before: 7, After: 7}) {
		t.Errorf("got %d checked, %d broken, %+v", checked, broken, first)
	}
}

func TestLatenciesOfAllCallersAreTrueToThreeDigits(t *testing.T) {
	r := NewRecorder()
	if got := r.Result(time.Second); got.Latency != (Latency{}) || got.Timed != 0 {
		t.Errorf("of no call: %+v", got)
	}
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 10_000)
	sheets := []Sheet{r.Sheet(0), r.Sheet(1), r.Sheet(2)}
	for i := range values {
		ns := int64(random.ExpFloat64() * 1e6)
		values[i] = float64(ns) / 1000
		sheets[i%len(sheets)].Took(ns)
	}
	for i := range sheets {
		sheets[i].Hand()
	}
	slices.Sort(values)
	got := r.Result(time.Second)
	if got.Timed != uint64(len(values)) {
		t.Errorf("%d were timed, want %d", got.Timed, len(values))
	}
	for _, row := range []struct{ q, got float64 }{
		{0.5, got.Latency.P50}, {0.9, got.Latency.P90}, {0.99, got.Latency.P99}, {0.999, got.Latency.P999},
	} {
		if exact := values[int(row.q*float64(len(values)))-1]; math.Abs(row.got-exact) > exact/1000+0.1 {
			t.Errorf("quantile %v: got %v, exact %v", row.q, row.got, exact)
		}
	}
	early := NewRecorder()
	s := early.Sheet(0)
	s.Took(-int64(time.Second))
	s.Hand()
	if got := early.Result(time.Second); got.Latency.P99 > 0.1 || got.Timed != 1 {
		t.Errorf("of a negative time: %+v", got)
	}
}

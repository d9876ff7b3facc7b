package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// result is what seqctl bench says of a run.
type result struct {
	Rate    float64
	Failed  int
	Latency struct{ P50, P99 float64 } `json:"latency_us"`
}

// load runs seqctl bench.
func load(ctx context.Context, b testing.TB, c *localcluster.Cluster, duration time.Duration, args ...string) (r result, err error) {
	args = append([]string{"bench", "--addr", c.GRPC(), "-o", "json", "--uids", "100000", "--duration", duration.String()}, args...)
	out, err := harness.Command(ctx, b, nil, "seqctl", args...).Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	return r, err
}

// greedy are callers that ask for as much as there is, each by the target that a polite one
// calls as well.
var greedy = []struct {
	name, target string
	args         []string
}{
	{"4096 callers", "next", []string{"--callers", "4096"}},
	{"4096 callers by the router", "router", []string{"--callers", "4096"}},
	{"256 callers of 10000 keys", "next", []string{"--target", "batch", "--batch", "10000", "--callers", "256"}},
}

// BenchmarkFairness is one polite caller, of 100 calls a second, alone and beside greedy
// ones: how much longer its slowest call in a hundred takes, and how much of their rate the
// greedy ones keep. A run of 10 seconds a row.
func BenchmarkFairness(b *testing.B) {
	const every = 5 * time.Second
	for _, g := range greedy {
		b.Run(g.name, func(b *testing.B) {
			c := harness.Start(b, func(cfg *localcluster.Config) { cfg.Allocs = 2 })
			ctx := b.Context()
			polite := func() result {
				r, err := load(ctx, b, c, every, "--target", g.target, "--rate", "100", "--callers", "20", "--procs", "1")
				if err != nil {
					b.Fatal(err)
				}
				return r
			}
			others := func(d time.Duration) chan result {
				all := append([]string{"--target", g.target}, g.args...)
				done := make(chan result, 1)
				go func() {
					defer close(done)
					r, err := load(ctx, b, c, d, all...)
					if err != nil {
						b.Error(err)
					}
					done <- r
				}()
				return done
			}
			for b.Loop() {
				alone := polite()
				whole := <-others(every)
				rest := others(every + 3*time.Second)
				beside := polite()
				shared := <-rest
				b.ReportMetric(alone.Latency.P99/1e3, "alone-p99-ms")
				b.ReportMetric(beside.Latency.P99/1e3, "beside-p99-ms")
				b.ReportMetric(beside.Latency.P99/alone.Latency.P99, "p99-ratio")
				b.ReportMetric(shared.Rate/whole.Rate, "rate-kept")
				b.ReportMetric(float64(beside.Failed), "polite-failed")
				b.ReportMetric(float64(shared.Failed+whole.Failed), "greedy-failed")
				b.Logf("greedy: %.0f numbers a second alone, %.0f beside the polite one", whole.Rate, shared.Rate)
			}
		})
	}
}

// One round of the benchmark as a test. No caller starves beside callers that ask for all there is.
func TestAPoliteCallerIsServedBesideGreedyOnes(t *testing.T) {
	c := harness.Start(t, func(cfg *localcluster.Config) { cfg.Allocs, cfg.Sections = 2, 256 })
	for _, g := range greedy {
		t.Run(g.name, func(t *testing.T) {
			ctx := t.Context()
			done := make(chan error, 1)
			go func() {
				r, err := load(ctx, t, c, 3*time.Second, append([]string{"--target", g.target}, g.args...)...)
				if err == nil && r.Rate == 0 {
					err = fmt.Errorf("greedy callers got nothing: %v", r)
				}
				done <- err
			}()
			r, err := load(ctx, t, c, 2*time.Second, "--target", g.target, "--rate", "100", "--callers", "20", "--procs", "1")
			if err != nil || r.Rate == 0 || r.Failed > 0 {
				t.Errorf("the polite one: %+v, %v", r, err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

package own

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/report"
)

// errFailed: calls of a measurement failed, so that its figures say nothing.
var errFailed = errors.New("calls failed")

// warmup of every measurement.
const warmup = 400 * time.Millisecond

// outcome is what this package reads of `seqctl bench -o json`.
type outcome struct {
	Rate    float64 `json:"rate"`
	Numbers uint64  `json:"numbers"`
	Total   uint64  `json:"total_numbers"`
	Failed  uint64  `json:"failed"`
	Errors  any     `json:"errors"`
	Latency struct {
		P50  float64 `json:"p50"`
		P99  float64 `json:"p99"`
		P999 float64 `json:"p999"`
	} `json:"latency_us"`
	ClientCPU float64 `json:"client_cpu_us_per_number"`
}

// Command is a measurement as people type it.
func Command(args ...string) string {
	return "seqctl bench --addr ADDR --http HTTP " + strings.Join(args, " ")
}

// Bench runs `seqctl bench` for d against the first router, with these flags. Processor
// time of the servers is over the whole run, warm-up included, as are the numbers that
// it is divided by.
func (c *Cluster) Bench(ctx context.Context, d time.Duration, args ...string) (report.Sample, error) {
	commits, err := c.commits(ctx)
	if err != nil {
		return report.Sample{}, err
	}
	cpu, err := c.cpu()
	if err != nil {
		return report.Sample{}, err
	}
	began := time.Now()
	got, err := c.seqctlBench(ctx, c.GRPC(), d, args)
	if err != nil {
		return report.Sample{}, err
	}
	took := time.Since(began)
	after, err := c.cpu()
	if err != nil {
		return report.Sample{}, err
	}
	s := report.Sample{Rate: got.Rate, P50: got.Latency.P50, P99: got.Latency.P99, P999: got.Latency.P999, ClientCPU: got.ClientCPU,
		ServerCPU: float64((after - cpu).Microseconds()) / float64(got.Total)}
	now, err := c.commits(ctx)
	if err != nil {
		return report.Sample{}, err
	}
	for id, n := range now {
		s.Commits = max(s.Commits, float64(n-commits[id])/took.Seconds())
	}
	return s, nil
}

func (c *Cluster) seqctlBench(ctx context.Context, addr string, d time.Duration, args []string) (outcome, error) {
	all := append([]string{"bench", "--addr", addr, "--http", c.HTTP(), "--duration", d.String(), "-o", "json"}, args...)
	if !slices.Contains(args, "--warmup") {
		all = append(all, "--warmup", warmup.String())
	}
	cmd := exec.CommandContext(ctx, c.seqctl, all...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return outcome{}, fmt.Errorf("seqctl %s: %w: %s", strings.Join(all, " "), err, strings.TrimSpace(stderr.String()))
	}
	var got outcome
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		return outcome{}, fmt.Errorf("seqctl %s: %w", strings.Join(all, " "), err)
	}
	if got.Failed > 0 || got.Numbers == 0 {
		return outcome{}, fmt.Errorf("seqctl %s: %w: %d, %v", strings.Join(all, " "), errFailed, got.Failed, got.Errors)
	}
	return got, nil
}

// Ask runs another verb of seqctl.
func (c *Cluster) Ask(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, c.seqctl, append(args, "--addr", c.GRPC())...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("seqctl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// raises is the number of Raise calls in a measurement, each by raiseBy. That is far above the numbers that
// any section has ahead. All of them together stay below the hourly limit of raises of a section.
const (
	raises  = 60
	raiseBy = seq.Seq(1) << 28
)

// Raise is the median time of a Raise above its section's ceiling, one after the
// other: a call that waits for one durable write at W stores.
func (c *Cluster) Raise(ctx context.Context) (time.Duration, error) {
	sdk, err := client.New(ctx, client.Config{Addrs: []string{c.GRPC()}})
	if err != nil {
		return 0, err
	}
	defer sdk.Close()
	took := make([]time.Duration, raises)
	key := client.Key{UID: 7}
	top, err := sdk.Next(ctx, key)
	if err != nil {
		return 0, err
	}
	for i := range took {
		top += raiseBy
		began := time.Now()
		if _, err := sdk.Raise(ctx, key, top); err != nil {
			return 0, err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[raises/2], nil
}

// Flags are the flags of most measurements.
func Flags(callers int, more ...string) []string {
	return append([]string{"--callers", strconv.Itoa(callers)}, more...)
}

package peers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/load"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/host"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/report"
)

// ErrAbsent: a program is not installed.
var ErrAbsent = errors.New("not installed")

// errNothing: a measurement without one answer.
var errNothing = errors.New("no call succeeded")

// startPatience bounds the start of one server, and fillPatience what is put into it first.
const (
	startPatience = 60 * time.Second
	fillPatience  = 5 * time.Minute
)

// warmup of a load made by this program.
const warmup = 300 * time.Millisecond

// hand loads a server from this process and adds up processor times. call is as
// load.Call, one number each.
func hand(ctx context.Context, callers int, d time.Duration, servers func() []int, call load.Call) (report.Sample, error) {
	var client, server [2]time.Duration
	var trouble error
	notice := func(p load.Phase) {
		var err error
		client[p] = host.OwnCPU()
		server[p], err = host.CPU(servers()...)
		trouble = errors.Join(trouble, err)
	}
	r, err := load.Run(ctx, load.Config{Callers: callers, Warmup: warmup, Duration: d, PerCall: 1, Timeout: 30 * time.Second}, call, notice)
	switch {
	case err != nil:
		return report.Sample{}, err
	case trouble != nil:
		return report.Sample{}, trouble
	case r.Calls == 0 || r.Failed > 0:
		return report.Sample{}, fmt.Errorf("%w, or some failed: %d of %d: %v", errNothing, r.Failed, r.Calls+r.Failed, r.Errors)
	}
	us := func(t [2]time.Duration) float64 {
		return float64((t[1] - t[0]).Nanoseconds()) / 1000 / float64(r.Numbers)
	}
	return report.Sample{Rate: r.Rate, P50: r.Latency.P50, P99: r.Latency.P99, P999: r.Latency.P999, ClientCPU: us(client), ServerCPU: us(server)}, nil
}

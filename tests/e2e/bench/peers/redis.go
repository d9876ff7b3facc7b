package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/tests/e2e/bench/host"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/report"
)

// errOutput: redis-benchmark printed something else than expected.
var errOutput = errors.New("redis-benchmark: output not understood")

// redisKeys is among how many keys INCR chooses at random.
const redisKeys = 1_000_000

// Redis is one server of one way of persistence, or one that speaks as Redis does.
type Redis struct {
	server *host.Server // nil if it is not ours to stop
	port   int
	pids   []int
	incr   []string        // how redis-benchmark is told to increment random keys
	rate   map[int]float64 // last rate by pipeline: how many requests a measurement has
}

// firstRates are guesses, for the first measurement.
func firstRates() map[int]float64 { return map[int]float64{1: 150e3, 16: 700e3, 100: 1e6} }

// RedisFront is an address at which processes that run speak as Redis does, for keys that begin
// with a prefix.
func RedisFront(addr, prefix string, pids []int) (*Redis, error) {
	if _, err := exec.LookPath("redis-benchmark"); err != nil {
		return nil, fmt.Errorf("%w: redis-benchmark", ErrAbsent)
	}
	_, text, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	return &Redis{port: port, pids: pids, incr: []string{"incr", prefix + "__rand_int__"}, rate: firstRates()}, nil
}

// StartRedis starts a server below dir and fills its keys. persistence is none,
// everysec or always.
func StartRedis(ctx context.Context, dir, persistence string) (*Redis, error) {
	for _, program := range []string{"redis-server", "redis-benchmark"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%w: %s", ErrAbsent, program)
		}
	}
	dir = filepath.Join(dir, "redis-"+persistence)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	port, err := host.FreePort()
	if err != nil {
		return nil, err
	}
	args := []string{"redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--dir", dir, "--maxclients", "8192"}
	if persistence == "none" {
		args = append(args, "--appendonly", "no")
	} else {
		args = append(args, "--appendonly", "yes", "--appendfsync", persistence)
	}
	server, err := host.Start(dir, "redis", nil, args...)
	if err != nil {
		return nil, err
	}
	r := &Redis{server: server, port: port, pids: []int{server.Pid()}, incr: []string{"-t", "incr"}, rate: firstRates()}
	wait, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := server.Until(wait, func() error { return host.Listening(port) }); err != nil {
		r.Stop()
		return nil, err
	}
	// All keys exist before the first measurement, as they do from then on.
	fill, cancel := context.WithTimeout(ctx, fillPatience)
	defer cancel()
	if _, err := r.run(fill, 50, 100, 3*redisKeys); err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

// Stop ends the server.
func (r *Redis) Stop() {
	if r.server != nil {
		r.server.Stop()
	}
}

// Pids are the server's processes.
func (r *Redis) Pids() []int { return r.pids }

// RedisCommand returns the command of a measurement, for people.
func RedisCommand(callers, pipeline int) string {
	return "redis-benchmark -p PORT -t incr -r 1000000 -n N -c " + strconv.Itoa(callers) + " -P " + strconv.Itoa(pipeline)
}

// Incr measures INCR of random keys for about d.
func (r *Redis) Incr(ctx context.Context, callers, pipeline int, d time.Duration) (report.Sample, error) {
	if callers > 1000 {
		d *= 2 // the time of connecting counts, so it is to be little of it
	}
	n := max(int(r.rate[pipeline]*d.Seconds()), 3*callers*pipeline)
	before, err := host.CPU(r.Pids()...)
	if err != nil {
		return report.Sample{}, err
	}
	got, err := r.run(ctx, callers, pipeline, n)
	if err != nil {
		return report.Sample{}, err
	}
	after, err := host.CPU(r.Pids()...)
	if err != nil {
		return report.Sample{}, err
	}
	r.rate[pipeline] = got.Rate
	got.ServerCPU = float64((after - before).Microseconds()) / float64(n)
	return got, nil
}

func (r *Redis) run(ctx context.Context, callers, pipeline, n int) (report.Sample, error) {
	args := []string{"-p", strconv.Itoa(r.port), "-r", strconv.Itoa(redisKeys),
		"-n", strconv.Itoa(n), "-c", strconv.Itoa(callers), "-P", strconv.Itoa(pipeline)}
	cmd := exec.CommandContext(ctx, "redis-benchmark", append(args, r.incr...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return report.Sample{}, fmt.Errorf("redis-benchmark: %w: %.500s", err, out)
	}
	s, err := parseRedis(string(out))
	s.ClientCPU = float64((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Microseconds()) / float64(n)
	return s, err
}

var (
	throughput = regexp.MustCompile(`throughput summary: ([0-9.]+) requests per second`)
	summary    = regexp.MustCompile(`avg\s+min\s+p50\s+p95\s+p99\s+max\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)`)
	percentile = regexp.MustCompile(`(?m)^([0-9.]+)% <= ([0-9.]+) milliseconds`)
)

// parseRedis reads what redis-benchmark prints.
func parseRedis(out string) (report.Sample, error) {
	rate, latency := throughput.FindStringSubmatch(out), summary.FindStringSubmatch(out)
	if rate == nil || latency == nil {
		return report.Sample{}, fmt.Errorf("%w: %.500s", errOutput, out)
	}
	float := func(text string) float64 { x, _ := strconv.ParseFloat(text, 64); return x } // the pattern lets digits through only
	s := report.Sample{Rate: float(rate[1]), P50: 1000 * float(latency[3]), P99: 1000 * float(latency[5])}
	first, _, _ := strings.Cut(out, "Cumulative distribution")
	for _, line := range percentile.FindAllStringSubmatch(first, -1) {
		if float(line[1]) >= 99.9 {
			s.P999 = 1000 * float(line[2])
			break
		}
	}
	return s, nil
}

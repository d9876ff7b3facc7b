package peers

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/tests/e2e/bench/report"
)

func TestWhatRedisBenchmarkPrintsIsRead(t *testing.T) {
	text, err := os.ReadFile("testdata/redis-benchmark.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseRedis(string(text))
	want := report.Sample{Rate: 98765.43, P50: 375, P99: 1543, P999: 3943}
	if err != nil || got != want {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
	if _, err := parseRedis("WARNING: could not fetch server CONFIG"); !errors.Is(err, errOutput) {
		t.Errorf("got %v, want %v", err, errOutput)
	}
}

// skipAbsent skips where a program is missing.
func skipAbsent(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sound is whether a measurement has what the report shows.
func sound(t *testing.T, s report.Sample, err error) {
	t.Helper()
	if err != nil || s.Rate <= 0 || s.P50 <= 0 || s.P50 > s.P999 || s.ClientCPU <= 0 {
		t.Errorf("got %+v and %v", s, err)
	}
}

const short = 300 * time.Millisecond

func TestRedisIsMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	r, err := StartRedis(t.Context(), t.TempDir(), "everysec")
	skipAbsent(t, err)
	defer r.Stop()
	s, err := r.Incr(t.Context(), 16, 16, short)
	sound(t, s, err)
}

func TestEtcdIsMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	e, err := StartEtcd(t.Context(), t.TempDir())
	skipAbsent(t, err)
	defer e.Stop()
	s, err := e.Next(t.Context(), 8, short)
	sound(t, s, err)
}

func TestPostgresIsMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	// The server may run under another account, which must be able to enter the folder.
	dir, err := os.MkdirTemp("", "bench-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	p, err := StartPostgres(ctx, dir)
	skipAbsent(t, err)
	defer p.Stop()
	for _, statement := range []string{Nextval, Update} {
		s, err := p.Next(ctx, statement, 8, short)
		sound(t, s, err)
	}
}

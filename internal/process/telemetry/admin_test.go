package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// subject is a daemon with one metric.
type subject struct {
	Func
	err atomic.Pointer[error]
}

func newSubject() *subject {
	n := Counter("test_total", "For a test.", "space")
	return &subject{Func: func(ch chan<- prometheus.Metric) { n.Send(ch, 3, "user") }}
}

func (s *subject) Ready() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

// listen starts an admin listener and gives its URL.
func listen(t *testing.T, a Admin) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Serve(ctx, lis) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + lis.Addr().String()
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: 30 * time.Second}
	reply, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(text)
}

func TestTheProbesAndMetricsFollowTheDaemon(t *testing.T) {
	s := newSubject()
	url := listen(t, Admin{Daemon: "testsvr", Subject: s})
	for _, step := range []struct {
		err   error
		code  int
		text  string
		gauge string
	}{
		{nil, 200, "ok\n", "seq_ready 1"},
		{errors.New("no quorum: 1 of 3"), 503, "not ready: no quorum: 1 of 3\n", "seq_ready 0"},
		{nil, 200, "ok\n", "seq_ready 1"},
	} {
		s.err.Store(&step.err)
		if step.err == nil {
			s.err.Store(nil)
		}
		if code, text := get(t, url+"/readyz"); code != step.code || text != step.text {
			t.Errorf("%v: got %d %q, want %d %q", step.err, code, text, step.code, step.text)
		}
		if code, text := get(t, url+"/livez"); code != 200 || text != "ok\n" {
			t.Errorf("%v: a process that answers lives: got %d %q", step.err, code, text)
		}
		_, text := get(t, url+"/metrics")
		for _, want := range []string{step.gauge, `seq_test_total{space="user"} 3`, `seq_build_info{`, "go_goroutines ", "process_open_fds "} {
			if !strings.Contains(text, want) {
				t.Errorf("%v: no %q among the metrics", step.err, want)
			}
		}
	}
}

func TestProfilesAreThereOnlyWhenAskedFor(t *testing.T) {
	for _, on := range []bool{false, true} {
		url := listen(t, Admin{Daemon: "testsvr", Subject: newSubject(), Pprof: on})
		want := map[bool]int{false: 404, true: 200}[on]
		if code, _ := get(t, url+"/debug/pprof/goroutine?debug=1"); code != want {
			t.Errorf("pprof %v: got %d, want %d", on, code, want)
		}
		if code, text := get(t, url+"/"); code != 200 || strings.Contains(text, "pprof") != on {
			t.Errorf("pprof %v: got %d %q", on, code, text)
		}
		if code, _ := get(t, url+"/nowhere"); code != 404 {
			t.Errorf("an unknown path: got %d, want 404", code)
		}
	}
}

func TestAHistogramCountsWhatASampleStandsFor(t *testing.T) {
	h := Durations()
	h.Observe(70 * time.Microsecond)
	h.Observe(-time.Second)
	h.Add(uint64(3*time.Second), 8)
	h.Observe(time.Hour)
	count, sum, buckets := h.read()
	got := fmt.Sprintf("%d %.5f %d %d %d %d", count, sum, buckets[50e-6], buckets[100e-6], buckets[2.5], buckets[5])
	if want := "11 3624.00007 1 2 2 10"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	p := Percents()
	for _, v := range []uint64{0, 50, 51, 1000} {
		p.Add(v, 1)
	}
	if count, sum, buckets := p.read(); count != 4 || sum != 11.01 || buckets[0.5] != 2 || buckets[0.75] != 3 || buckets[2] != 3 {
		t.Errorf("got %d, %v, %v", count, sum, buckets)
	}
}

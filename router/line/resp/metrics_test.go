package resp

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
)

// shown are the metrics of a server whose name begins so, as "name{values} number".
func shown(t *testing.T, s *Server, names ...string) (out []string) {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(telemetry.Func(s.Send))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := []string{}
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
			if slices.Contains(names, strings.TrimPrefix(f.GetName(), "seq_router_resp_")) && value > 0 {
				out = append(out, strings.Join(labels, " ")+" "+string(rune('0'+int(value))))
			}
		}
	}
	return out
}

// serveOne is a server whose insides the test sees.
func serveOne(t *testing.T, from Numbers) (s *Server, addr string) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = New(NewDialect(), from, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, lis, bound) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, lis.Addr().String()
}

func TestCommandsAreCountedByNameAndResult(t *testing.T) {
	from := newCounters()
	s, addr := serveOne(t, from)
	c := dial(t, addr)
	c.send(array("INCR", "seq:1") + array("incr", "seq:1") + array("INCR", "nothing") + array("FLUSHALL") + array("PING") + array("GET", "seq:1", "x"))
	for range 6 {
		c.reply()
	}
	c.send("*1\r\n!\r\n")
	c.reply()
	want := []string{"(malformed) error 1", "(other) error 1", "get error 1", "incr error 1", "incr ok 2", "ping ok 1"}
	if diff := cmp.Diff(want, shown(t, s, "commands_total")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	from.mu.Lock()
	from.fault = context.DeadlineExceeded
	from.mu.Unlock()
	again := dial(t, addr)
	again.send(array("INCR", "seq:1"))
	again.reply()
	if got := shown(t, s, "commands_total"); !slices.Contains(got, "incr retry 1") {
		t.Errorf("a cluster that is too slow: got %q, want incr retry 1", got)
	}
}

func TestConnectionsBeyondTheLimitAreRefusedAndCounted(t *testing.T) {
	s, addr := serveOne(t, newCounters())
	first, second := dial(t, addr), dial(t, addr)
	first.want(":1", "INCR", "seq:1")
	second.want(":2", "INCR", "seq:1")
	s.SetLimits(Limits{MaxConns: 1, MaxPipeline: 2})
	third := dial(t, addr)
	if got, want := third.reply(), "-ERR max number of clients reached"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := third.in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after it: got %v, want the end", err)
	}
	// A connection from before stays, and gets a long pipeline in parts.
	second.send(strings.Repeat(array("INCR", "seq:1"), 5))
	for _, want := range []string{":3", ":4", ":5", ":6", ":7"} {
		if got := second.reply(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	want := []string{" 2", " 1", "refused 1", "served 2"}
	if diff := cmp.Diff(want, shown(t, s, "connections", "connections_limit", "connections_total")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

package resp

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/router/line/linetest"
)

// shown are the metrics of a server whose name begins so, as "name{values} number".
func shown(t *testing.T, s *line.Server, names ...string) (out []string) {
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

func TestCommandsAreCountedByNameAndResult(t *testing.T) {
	from := linetest.NewCounters()
	s := line.New(New(), from, nil)
	addr, _ := linetest.Serve(t, s)
	c := linetest.Dial(t, addr)
	c.Send(linetest.Array("INCR", "seq:1") + linetest.Array("incr", "seq:1") + linetest.Array("INCR", "nothing") + linetest.Array("FLUSHALL") + linetest.Array("PING") + linetest.Array("GET", "seq:1", "x"))
	for range 6 {
		c.Reply()
	}
	c.Send("*1\r\n!\r\n")
	c.Reply()
	want := []string{"(malformed) error 1", "(other) error 1", "get error 1", "incr error 1", "incr ok 2", "ping ok 1"}
	if diff := cmp.Diff(want, shown(t, s, "commands_total")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	from.Fail(context.DeadlineExceeded)
	again := linetest.Dial(t, addr)
	again.Send(linetest.Array("INCR", "seq:1"))
	again.Reply()
	if got := shown(t, s, "commands_total"); !slices.Contains(got, "incr retry 1") {
		t.Errorf("a cluster that is too slow: got %q, want incr retry 1", got)
	}
}

func TestConnectionsBeyondTheLimitAreRefusedAndCounted(t *testing.T) {
	s := line.New(New(), linetest.NewCounters(), nil)
	addr, _ := linetest.Serve(t, s)
	first, second := linetest.Dial(t, addr), linetest.Dial(t, addr)
	first.Want(":1", "INCR", "seq:1")
	second.Want(":2", "INCR", "seq:1")
	s.SetLimits(line.Limits{MaxConns: 1, MaxPipeline: 2})
	third := linetest.Dial(t, addr)
	if got, want := third.Reply(), "-ERR max number of clients reached"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := third.In.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after it: got %v, want the end", err)
	}
	// A connection from before stays, and gets a long pipeline in parts.
	second.Send(strings.Repeat(linetest.Array("INCR", "seq:1"), 5))
	for _, want := range []string{":3", ":4", ":5", ":6", ":7"} {
		if got := second.Reply(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	want := []string{" 2", " 1", "refused 1", "served 2"}
	if diff := cmp.Diff(want, shown(t, s, "connections", "connections_limit", "connections_total")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

package daemon

import (
	"context"
	"errors"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/tests/kit/otlptest"
)

// span makes one, as a daemon would.
func span(c *Common, name string) {
	_, s := c.Traces.Root(context.Background(), name)
	s.End(nil)
}

func TestTracesAreSentUntilTheDaemonHasDrained(t *testing.T) {
	collector := otlptest.New(t)
	settings := filepath.Join(t.TempDir(), "seqd.yaml")
	write(t, settings, "name: a\ntrace-endpoint: "+collector.Addr+"\ntrace-sample: 0\n")
	log := &journal{}
	load := loader(settings, log)
	c, err := load(nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Reread = func() (*Common, error) { return load(nil) }
	if c.Traces != nil {
		t.Error("there are traces before the daemon starts")
	}
	s := newStill()
	s.drain = make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	started, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- c.Serve(ctx, "seqd", func() (Service, error) { close(started); return s, nil })
	}()
	<-started
	span(c, "not sampled")
	write(t, settings, "name: a\ntrace-endpoint: "+collector.Addr+"\ntrace-sample: 1\n")
	c.Reload()
	log.await(t, `msg="setting changed" setting=trace-sample from=0 to=1`)
	span(c, "sampled")
	stop()
	span(c, "while it drains")
	close(s.drain)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range collector.Spans() {
		names = append(names, s.Name)
		if s.Service != "seqd" || s.Instance != "a" {
			t.Errorf("%s is of %s %s", s.Name, s.Service, s.Instance)
		}
	}
	if got := strings.Join(names, ", "); got != "sampled, while it drains" {
		t.Errorf("got %q", got)
	}
}

func TestWithoutAnEndpointThereAreNoTraces(t *testing.T) {
	c, err := loader("", io.Discard)([]string{"--trace-sample", "1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	err = c.Serve(ctx, "seqd", func() (Service, error) {
		if c.Traces != nil {
			t.Error("there is a tracer")
		}
		return newStill(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBadTraceSettingsAreUsageErrorsThatNameTheFlag(t *testing.T) {
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"--trace-endpoint", "collector"}, "--trace-endpoint"},
		{[]string{"--trace-endpoint", "unix:///x"}, "--trace-endpoint"},
		{[]string{"--trace-sample", "2"}, "--trace-sample"},
		{[]string{"--trace-sample", "-1"}, "--trace-sample"},
		{[]string{"--trace-sample", strconv.FormatFloat(math.NaN(), 'f', -1, 64)}, "--trace-sample"},
		{[]string{"--trace-sample", "much"}, "--trace-sample"},
		{[]string{"--trace-ca", "ca.pem"}, "--trace-ca"},
		{[]string{"--trace-endpoint", "c:1", "--trace-ca", "ca.pem"}, "--trace-ca"},
		{[]string{"--trace-endpoint", "https://c:1", "--trace-ca", filepath.Join(t.TempDir(), "ca.pem")}, "ca.pem"},
	} {
		_, err := loader("", io.Discard)(row.args)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: got %v, want %s", row.args, err, row.want)
		}
		if !strings.Contains(row.args[1], "much") && !errors.Is(err, ErrUsage) { // config.Load names that one itself
			t.Errorf("%q: got %v, want a usage error", row.args, err)
		}
	}
}

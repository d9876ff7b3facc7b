package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/goleak"

	"github.com/seqsvr/seqsvr/internal/process/tracing"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patient bounds how long a test waits for a condition on a busy machine.
const patient = 60 * time.Second

// collector is an exporter that a test holds up.
type collector struct {
	open chan struct{} // if nil, it answers at once
	err  error

	mu  sync.Mutex // guards got
	got int
}

func (c *collector) Shutdown(context.Context) error { return nil }

func (c *collector) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if c.open != nil {
		select {
		case <-c.open:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got += len(spans)
	return c.err
}

// through gives a tracer whose spans go through a queue of the size.
func through(to sdk.SpanExporter, size int) (*tracing.Tracer, *queue, *sdk.TracerProvider) {
	q := newQueue(to, size, slog.New(slog.DiscardHandler))
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(q), sdk.WithSampler(sdk.AlwaysSample()))
	return tracing.New(provider, q.counts), q, provider
}

func spans(t *testing.T, tracer *tracing.Tracer, n int) {
	t.Helper()
	for range n {
		_, span := tracer.Root(t.Context(), "x")
		span.End(nil)
	}
}

func TestWhatIsQueuedIsSentAtTheEnd(t *testing.T) {
	c := &collector{}
	tracer, _, provider := through(c, 4096)
	spans(t, tracer, 1000)
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := tracer.Counts(); c.got != 1000 || n != (tracing.Counts{Sent: 1000}) {
		t.Errorf("%d spans came, counted %+v", c.got, n)
	}
	spans(t, tracer, 1) // no collector takes it, and nothing waits
}

func TestACollectorThatHangsCostsSpansAndNobodysTime(t *testing.T) {
	c := &collector{open: make(chan struct{})}
	tracer, q, _ := through(c, 8)
	spans(t, tracer, batchSize+100) // returns, whatever the collector does
	if n := q.counts().Dropped; n == 0 {
		t.Error("none was dropped")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	if err := q.Shutdown(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want what ended the wait", err)
	}
	if took := time.Since(began); took >= sendTime {
		t.Errorf("the end took %v, as long as a batch may", took)
	}
	if n := tracer.Counts(); n.Sent != 0 || n.Dropped+n.Failed != batchSize+100 {
		t.Errorf("counted %+v of %d spans", n, batchSize+100)
	}
}

func TestSpansThatACollectorRefusesAreCountedAndLoggedOnceInAWhile(t *testing.T) {
	var log strings.Builder
	q := newQueue(&collector{err: errors.New("too many spans")}, 8, slog.New(slog.NewTextHandler(&log, nil)))
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(q))
	tracer := tracing.New(provider, q.counts)
	for i := range 3 {
		spans(t, tracer, 1)
		deadline := time.Now().Add(patient)
		for tracer.Counts().Failed != uint64(i+1) {
			if time.Now().After(deadline) {
				t.Fatalf("counted %+v", tracer.Counts())
			}
			<-time.After(5 * time.Millisecond)
		}
	}
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "too many spans") || !strings.Contains(log.String(), "--trace-endpoint") {
		t.Errorf("the log is\n%s", log.String())
	}
}

func TestAnUnreachableCollectorFailsNothing(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := lis.Addr().String()
	if err := lis.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := Start(Config{Endpoint: addr, Sample: 1, Daemon: "router", Instance: "r"})
	if err != nil {
		t.Fatal(err)
	}
	spans(t, e.Tracer(), 10)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_ = e.Close(ctx) // says that not all were sent, or that they failed before
	if n := e.Tracer().Counts(); n.Sent != 0 || n.Failed+n.Dropped != 10 {
		t.Errorf("counted %+v of 10", n)
	}
}

func TestRareThingsAreKeptBesideTheRatioUpToABound(t *testing.T) {
	s := newSampler(0)
	provider := sdk.NewTracerProvider(sdk.WithSampler(sdk.ParentBased(s)))
	defer func() { _ = provider.Shutdown(t.Context()) }()
	tracer := tracing.New(provider, nil)
	if ctx, _ := tracer.Root(t.Context(), "x"); tracer.Sampled(ctx) {
		t.Error("with a ratio of 0 an ordinary call is sampled")
	}
	ctx, _ := tracer.Rare(t.Context(), "takeover")
	if !tracer.Sampled(ctx) {
		t.Error("a rare thing is not sampled")
	}
	if child, span := tracer.Child(ctx, "step"); !tracer.Sampled(child) || span == (tracing.Span{}) {
		t.Error("what it waits for is not")
	}
	now := time.Unix(1000, 0)
	s.from = time.Time{}
	kept := 0
	for range 10 * rareMost {
		if s.keep(now) {
			kept++
		}
	}
	if kept != rareMost || !s.keep(now.Add(rareTime)) {
		t.Errorf("%d are kept within a moment, want %d, and again later", kept, rareMost)
	}
	s.set(1)
	if ctx, _ := tracer.Root(t.Context(), "x"); !tracer.Sampled(ctx) {
		t.Error("with a ratio of 1 an ordinary call is not sampled")
	}
}

func TestBadSettingsAreRefusedByTheirFlag(t *testing.T) {
	good := Config{Endpoint: "collector:4317", Sample: 0.5}
	for _, endpoint := range []string{good.Endpoint, "http://collector:4317", "https://collector:4317", "[::1]:4317"} {
		if err := (Config{Endpoint: endpoint, Sample: 1}).Validate(); err != nil {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	for _, row := range []struct {
		cfg  Config
		want string
	}{
		{Config{Endpoint: "collector"}, "--trace-endpoint"},
		{Config{Endpoint: ":4317"}, "--trace-endpoint"},
		{Config{Endpoint: "collector:port"}, "--trace-endpoint"},
		{Config{Endpoint: "collector:0"}, "--trace-endpoint"},
		{Config{Endpoint: "collector:70000"}, "--trace-endpoint"},
		{Config{Endpoint: "ftp://collector:4317"}, "--trace-endpoint"},
		{Config{Endpoint: "http://collector:4317/v1/traces"}, "--trace-endpoint"},
		{Config{Endpoint: good.Endpoint, Sample: -0.1}, "--trace-sample"},
		{Config{Endpoint: good.Endpoint, Sample: 1.1}, "--trace-sample"},
		{Config{Endpoint: good.Endpoint, Sample: math.NaN()}, "--trace-sample"},
		{Config{Endpoint: good.Endpoint, Files: rpc.TLSFiles{CA: "ca.pem"}}, "https://"},
		{Config{Endpoint: "https://collector:4317", Files: rpc.TLSFiles{CA: filepath.Join(t.TempDir(), "ca.pem")}}, "--trace-ca"},
	} {
		err := row.cfg.Validate()
		if !errors.Is(err, ErrConfig) || !strings.Contains(fmt.Sprint(err), row.want) {
			t.Errorf("%+v: got %v, want %s", row.cfg, err, row.want)
		}
		if e, err := Start(row.cfg); err == nil {
			t.Errorf("%+v: started %v", row.cfg, e)
		}
	}
}

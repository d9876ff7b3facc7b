package traces

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
	"github.com/seqsvr/seqsvr/internal/process/tracing/otlp"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
	"github.com/seqsvr/seqsvr/tests/kit/otlptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patient bounds the wait of a test for a condition on a busy machine.
const patient = 60 * time.Second

// secretUID stands for a caller's data: it must not be in a trace.
const secretUID = 918273645546372819

const sections = 8

// cluster is a store, two allocators and a router in this process, each with an exporter
// of its own.
type cluster struct {
	t      *testing.T
	spans  *otlptest.Collector
	store  *storesvr.Store
	allocs map[string]*allocsvr.Server
	stop   map[string]func() // ends an allocator in order, and its exporter
	router *router.Router
	conn   *grpc.ClientConn // to the router
}

// tracer sends what a daemon does to the collector; no trace begins there by chance.
func (c *cluster) tracer(daemon, name string) (*tracing.Tracer, func()) {
	c.t.Helper()
	e, err := otlp.Start(otlp.Config{Endpoint: c.spans.Addr, Sample: 0, Daemon: daemon, Instance: name, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.t.Fatal(err)
	}
	return e.Tracer(), func() {
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			c.t.Errorf("%s: %v", name, err)
		}
	}
}

// run starts a daemon; the result stops it in order and sends its last spans. It is
// called at the end of the test in any case.
func (c *cluster) run(name string, flush func(), s interface{ Run(context.Context) error }) (stop func()) {
	return harness.Inside(c.t, name, func(ctx context.Context) error {
		defer flush()
		return s.Run(ctx)
	})
}

func start(t *testing.T) *cluster {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	c := &cluster{t: t, spans: otlptest.New(t), allocs: map[string]*allocsvr.Server{}, stop: map[string]func(){}}
	var err error
	var flush func()
	sc := harness.StoreConfig(t, "store-1", []string{"store-1"}, seq.Space{Sections: sections, Step: 100})
	sc.Traces, flush = c.tracer("storesvr", "store-1")
	if c.store, err = storesvr.New(sc); err != nil {
		t.Fatal(err)
	}
	c.run("store-1", flush, c.store)
	var addrs []string
	for _, name := range []string{"alloc-1", "alloc-2"} {
		ac := allocsvr.DefaultConfig()
		ac.Name, ac.Listen, ac.Stores, ac.Logger, ac.ExpectAllocs = name, "127.0.0.1:0", []string{c.store.Addr()}, log, 2
		ac.Traces, flush = c.tracer("allocsvr", name)
		if c.allocs[name], err = allocsvr.New(ac); err != nil {
			t.Fatal(err)
		}
		c.stop[name] = c.run(name, flush, c.allocs[name])
		addrs = append(addrs, c.allocs[name].Addr())
	}
	rc := router.Config{Listen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Allocs: addrs, Logger: log}
	rc.Traces, flush = c.tracer("router", "router-1")
	if c.router, err = router.New(rc); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.router.Close() })
	c.run("router-1", flush, c.router)
	if c.conn, err = rpc.Dial(c.router.Addr()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.conn.Close() })
	c.settled()
	return c
}

// settled waits until all sections are served, some by each allocator.
func (c *cluster) settled() {
	c.t.Helper()
	deadline := time.Now().Add(patient)
	for {
		one, two := c.served("alloc-1"), c.served("alloc-2")
		if one > 0 && two > 0 && one+two == sections && c.router.Ready() == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%d and %d sections are served, the router: %v", one, two, c.router.Ready())
		}
		<-time.After(20 * time.Millisecond)
	}
}

// served returns the number of sections that an allocator serves, by its metrics.
func (c *cluster) served(name string) int {
	c.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(telemetry.Func(c.allocs[name].Collect))
	families, err := registry.Gather()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "seq_alloc_sections" && m.GetLabel()[0].GetValue() == "served" {
				return int(m.GetGauge().GetValue())
			}
		}
	}
	return 0
}

// under is a call's context in a trace of the caller's, whose last two digits are n's.
func (c *cluster) under(n string) (ctx context.Context, trace string) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patient)
	c.t.Cleanup(cancel)
	trace = "0102030405060708090a0b0c0d0e0f" + n
	return metadata.AppendToOutgoingContext(ctx, "traceparent", parentOf(trace)), trace
}

func parentOf(trace string) string { return "00-" + trace + "-1112131415161718-01" }

// path is what a span stands below, itself first, as "service name".
func path(spans []otlptest.Span, of otlptest.Span) (steps []string) {
	for {
		steps = append(steps, of.Service+" "+of.Name)
		found := false
		for _, s := range spans {
			if s.ID == of.Parent && s.Trace == of.Trace {
				of, found = s, true
				break
			}
		}
		if !found {
			return steps
		}
	}
}

// leads says whether some span of the trace ("" for any) stands below these, in this
// order, with others between them.
func leads(spans []otlptest.Span, trace string, steps ...string) bool {
	for _, s := range spans {
		if trace != "" && s.Trace != trace {
			continue
		}
		want := steps
		for i, step := range path(spans, s) {
			if i == 0 && step != want[0] {
				break
			}
			if len(want) > 0 && step == want[0] {
				want = want[1:]
			}
		}
		if len(want) == 0 {
			return true
		}
	}
	return false
}

func TestATraceLeadsFromACallerOverRouterAndAllocatorToTheCommit(t *testing.T) {
	c := start(t)
	ctx, raise := c.under("10")
	_, err := pb.NewSequenceClient(c.conn).Raise(ctx, &pb.RaiseRequest{Id: &pb.RaiseRequest_Uid{Uid: secretUID}, AtLeast: 5000})
	if err != nil {
		t.Fatal(err)
	}
	c.spans.Await(t, "a commit below the call", func(spans []otlptest.Span) bool {
		return leads(spans, raise, "storesvr store.commit", "storesvr seqsvr.v1.Store/Step", "allocsvr seqsvr.v1.Store/Step", "allocsvr alloc.step",
			"allocsvr seqsvr.v1.Sequence/Raise", "router seqsvr.v1.Sequence/Raise", "router seqsvr.v1.Sequence/Raise")
	})

	ctx, next := c.under("20")
	if _, err := pb.NewSequenceClient(c.conn).Next(ctx, &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: secretUID}, Count: 3}); err != nil {
		t.Fatal(err)
	}
	c.spans.Await(t, "a single number's call at the allocator", func(spans []otlptest.Span) bool {
		return leads(spans, next, "allocsvr seqsvr.v1.Sequence/BatchNext", "router seqsvr.v1.Sequence/BatchNext", "router seqsvr.v1.Sequence/Next")
	})

	// A count above the ceiling waits for a step.
	ctx, wait := c.under("30")
	if _, err := pb.NewSequenceClient(c.conn).Next(ctx, &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: secretUID}, Count: 9000}); err != nil {
		t.Fatal(err)
	}
	c.spans.Await(t, "what a call waits for", func(spans []otlptest.Span) bool {
		return leads(spans, wait, "storesvr store.commit", "allocsvr alloc.step", "allocsvr alloc.wait", "allocsvr seqsvr.v1.Sequence/BatchNext", "router seqsvr.v1.Sequence/Next")
	})

	c.overHTTP()
	c.untraced()
	for _, s := range c.spans.Spans() {
		if strings.Contains(s.Name, "Renew") || strings.Contains(s.Name, "Stream") || strings.Contains(s.Name, "Describe") {
			t.Errorf("there is a span of %s", s.Name)
		}
		for key, value := range s.Attrs {
			if strings.Contains(value, "918273645546372819") {
				t.Errorf("%s: %s=%q is a caller's", s.Name, key, value)
			}
		}
	}
}

// overHTTP makes a request in a trace of its own.
func (c *cluster) overHTTP() {
	c.t.Helper()
	defer http.DefaultClient.CloseIdleConnections()
	const trace = "0102030405060708090a0b0c0d0e0f40"
	for _, path := range []string{"/v1/next", "/livez"} {
		method, body := http.MethodPost, `{"uid":"918273645546372819"}`
		if path == "/livez" {
			method, body = http.MethodGet, ""
		}
		r, err := http.NewRequestWithContext(c.t.Context(), method, "http://"+c.router.HTTPAddr()+path, strings.NewReader(body))
		if err != nil {
			c.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Traceparent", parentOf(trace))
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			c.t.Fatal(err)
		}
		_ = reply.Body.Close()
		if reply.StatusCode != http.StatusOK {
			c.t.Errorf("%s: %s", path, reply.Status)
		}
	}
	spans := c.spans.Await(c.t, "a request over HTTP", func(spans []otlptest.Span) bool {
		return leads(spans, trace, "allocsvr seqsvr.v1.Sequence/BatchNext", "router POST /v1/next")
	})
	for _, s := range spans {
		if strings.Contains(s.Name, "livez") {
			c.t.Errorf("there is a span of %s", s.Name)
		}
	}
}

// untraced makes calls that nobody asked to trace, single ones on a stream among them,
// and then one that is traced: when that is there, the others would be.
func (c *cluster) untraced() {
	c.t.Helper()
	count := func(name string) (n int) {
		for _, s := range c.spans.Spans() {
			if strings.HasSuffix(s.Name, name) {
				n++
			}
		}
		return n
	}
	nexts, batches := count("Sequence/Next"), count("Sequence/BatchNext")
	ctx, cancel := context.WithTimeout(c.t.Context(), patient)
	defer cancel()
	sdk, err := client.New(ctx, client.Config{Addrs: []string{c.allocs["alloc-1"].Addr()}})
	if err != nil {
		c.t.Fatal(err)
	}
	defer sdk.Close()
	for range 20 {
		if _, err := sdk.Next(ctx, client.Key{UID: 7}); err != nil {
			c.t.Fatal(err)
		}
		if _, err := pb.NewSequenceClient(c.conn).Next(ctx, &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 8}, Count: 1}); err != nil {
			c.t.Fatal(err)
		}
	}
	traced, trace := c.under("50")
	if _, err := pb.NewSequenceClient(c.conn).Next(traced, &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 8}, Count: 1}); err != nil {
		c.t.Fatal(err)
	}
	c.spans.Await(c.t, "the call after those that are not traced", func(spans []otlptest.Span) bool {
		return leads(spans, trace, "allocsvr seqsvr.v1.Sequence/BatchNext", "router seqsvr.v1.Sequence/Next")
	})
	// The one may have been tried more than once.
	if n, b := count("Sequence/Next"), count("Sequence/BatchNext"); n != nexts+1 || b-batches < 2 || b-batches > 12 {
		c.t.Errorf("41 calls, one of them traced, made %d and %d spans, want 1 and 2", n-nexts, b-batches)
	}
}

func TestAHandOverIsOneTraceOfBothNodes(t *testing.T) {
	c := start(t)
	c.stop["alloc-2"]()
	spans := c.spans.Await(t, "the successor's part of the hand-over", func(spans []otlptest.Span) bool {
		return leads(spans, "", "storesvr store.commit", "storesvr seqsvr.v1.Store/Prepare", "allocsvr alloc.acquire", "allocsvr seqsvr.v1.Peer/Take",
			"allocsvr alloc.handover", "allocsvr alloc.leave")
	})
	for _, s := range spans {
		if s.Name == "alloc.handover" && (s.Instance != "alloc-2" || s.Attrs["to"] != "alloc-1") {
			t.Errorf("a hand-over by %s to %s", s.Instance, s.Attrs["to"])
		}
	}
}

func TestATakeoverIsTracedWhateverTheRatio(t *testing.T) {
	c := start(t)
	c.allocs["alloc-2"].Close() // as a crash: nothing is handed over
	spans := c.spans.Await(t, "the takeover", func(spans []otlptest.Span) bool {
		return leads(spans, "", "storesvr store.commit", "allocsvr alloc.acquire", "allocsvr alloc.takeover")
	})
	for _, s := range spans {
		if s.Name == "alloc.takeover" && (s.Instance != "alloc-1" || s.Parent != "") {
			t.Errorf("a takeover by %s below %q", s.Instance, s.Parent)
		}
	}
}

package tracing

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// parent is a trace context as a caller sends it, sampled and not.
const (
	parent   = "00-0102030405060708090a0b0c0d0e0f10-1112131415161718-01"
	unwanted = "00-0102030405060708090a0b0c0d0e0f10-1112131415161718-00"
)

func recording(share float64) (*Tracer, *tracetest.SpanRecorder) {
	r := tracetest.NewSpanRecorder()
	return New(sdk.NewTracerProvider(sdk.WithSpanProcessor(r), sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(share)))), nil), r
}

// serve has the tracer serve a call with the metadata, and gives the context that the
// handler got.
func serve(t *Tracer, method string, result error, pairs ...string) (handler context.Context) {
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs(pairs...))
	_, _ = t.serveUnary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: method}, func(ctx context.Context, _ any) (any, error) {
		handler = ctx
		return nil, result
	})
	return handler
}

// sent is the traceparent of a call that is made under ctx.
func sent(t *Tracer, ctx context.Context, method string) (traceparent string) {
	conn, err := grpc.NewClient("passthrough:///nowhere:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	_ = t.callUnary(ctx, method, nil, nil, conn, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		md, _ := metadata.FromOutgoingContext(ctx)
		traceparent = strings.Join(md.Get("traceparent"), ",")
		return nil
	})
	return traceparent
}

func TestACallIsASpanOfItsCallersTraceAndGivesItOn(t *testing.T) {
	tracer, spans := recording(0)
	ctx := serve(tracer, pb.Sequence_Raise_FullMethodName, nil, "traceparent", parent)
	if got := sent(tracer, ctx, pb.Store_Step_FullMethodName); !strings.HasPrefix(got, "00-0102030405060708090a0b0c0d0e0f10-") || !strings.HasSuffix(got, "-01") {
		t.Errorf("the call to the store carries %q", got)
	}
	ended := spans.Ended()
	if len(ended) != 2 {
		t.Fatalf("%d spans, want those of the server and the client", len(ended))
	}
	server, client := ended[0], ended[1]
	if server.Parent().SpanID().String() != "1112131415161718" || server.SpanKind() != trace.SpanKindServer || server.Name() != "seqsvr.v1.Sequence/Raise" {
		t.Errorf("the server's span is %s of %v", server.Name(), server.Parent())
	}
	if client.Parent().SpanID() != server.SpanContext().SpanID() || client.SpanKind() != trace.SpanKindClient {
		t.Errorf("the client's span is a child of %v", client.Parent())
	}
}

func TestADecisionNotToTraceGoesAlong(t *testing.T) {
	tracer, spans := recording(1)
	ctx := serve(tracer, pb.Sequence_Raise_FullMethodName, nil, "traceparent", unwanted)
	if got := sent(tracer, ctx, pb.Store_Step_FullMethodName); !strings.HasSuffix(got, "-00") {
		t.Errorf("the call to the store carries %q", got)
	}
	if _, span := tracer.Child(ctx, "child"); span != (Span{}) {
		t.Error("it has a child")
	}
	if n := len(spans.Ended()); n != 0 {
		t.Errorf("%d spans", n)
	}
}

func TestOnlyCallsOfCallersBeginTraces(t *testing.T) {
	tracer, spans := recording(1)
	for method, want := range map[string]int{
		pb.Sequence_Raise_FullMethodName:      1,
		pb.Admin_Drain_FullMethodName:         1,
		pb.Store_Step_FullMethodName:          0,
		pb.Store_Renew_FullMethodName:         0,
		pb.Peer_Take_FullMethodName:           0,
		"/grpc.health.v1.Health/Check":        0,
		"/grpc.reflection.v1.ServerReflect/x": 0,
	} {
		before := len(spans.Ended())
		ctx := serve(tracer, method, nil)
		if got := len(spans.Ended()) - before; got != want {
			t.Errorf("%s: %d spans, want %d", method, got, want)
		}
		if want == 0 && sent(tracer, ctx, pb.Store_Step_FullMethodName) != "" {
			t.Errorf("%s: a trace context is sent for a call without one", method)
		}
	}
	before := len(spans.Ended())
	ctx := serve(tracer, pb.Store_Renew_FullMethodName, nil, "traceparent", parent)
	if len(spans.Ended()) != before || sent(tracer, ctx, pb.Store_Renew_FullMethodName) != "" {
		t.Error("a renewal is traced")
	}
}

func TestASpanTellsTheCodeOfAnErrorAndNotItsText(t *testing.T) {
	tracer, spans := recording(1)
	serve(tracer, pb.Sequence_Raise_FullMethodName, errors.Join(seq.ErrNoQuorum, errors.New("for the key secret")))
	_, span := tracer.Root(t.Context(), "own")
	span.End(errors.Join(seq.ErrNoQuorum, errors.New("secret")))
	for _, s := range spans.Ended() {
		if s.Status().Code != codes.Error || strings.Contains(s.Status().Description, "secret") || s.Status().Description == "" || len(s.Events()) > 0 {
			t.Errorf("%s: status %+v, events %v", s.Name(), s.Status(), s.Events())
		}
	}
}

func TestWorkForManyCallsIsAChildOfTheFirstWithLinksToTheOthers(t *testing.T) {
	tracer, spans := recording(1)
	var calls Calls
	for range maxLinks + 5 {
		ctx, span := tracer.Root(t.Context(), "call")
		calls = tracer.Note(calls, ctx)
		span.End(nil)
	}
	calls = tracer.Note(calls, t.Context())
	if len(calls) != maxLinks {
		t.Fatalf("%d calls are noted, want %d", len(calls), maxLinks)
	}
	_, span := tracer.Joint(t.Context(), "step", calls)
	span.Int("sections", 3)
	span.End(nil)
	ended := spans.Ended()
	step := ended[len(ended)-1]
	if step.Parent().SpanID() != ended[0].SpanContext().SpanID() || len(step.Links()) != maxLinks-1 {
		t.Errorf("the step is a child of %v with %d links", step.Parent().SpanID(), len(step.Links()))
	}
	if _, span := tracer.Joint(t.Context(), "step", nil); span != (Span{}) {
		t.Error("work for no call has a span")
	}
}

func TestARequestIsASpanByItsRoute(t *testing.T) {
	tracer, spans := recording(1)
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/{what}", func(w http.ResponseWriter, r *http.Request) {
		if !tracer.Sampled(r.Context()) {
			t.Error("the handler's context has no trace")
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/livez", func(http.ResponseWriter, *http.Request) {})
	h := tracer.HTTP(mux, "/livez")
	for _, path := range []string{"/v1/secret", "/livez"} {
		r := httptest.NewRequest("BREW", path, nil)
		r.Header.Set("traceparent", parent)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	ended := spans.Ended()
	if len(ended) != 1 || ended[0].Name() != "_OTHER /v1/{what}" || ended[0].Status().Code != codes.Error || ended[0].Parent().SpanID().String() != "1112131415161718" {
		t.Errorf("got %d spans: %+v", len(ended), ended)
	}
}

// none is no tracer.
var none *Tracer

// untraced is all that the hot path may ask a tracer for.
func untraced(ctx context.Context, t *Tracer) {
	ctx, span := t.Child(ctx, "alloc.wait")
	span.Int("keys", 1)
	calls := t.Note(nil, ctx)
	_, joint := t.Joint(ctx, "store.commit", calls)
	joint.Int("group", 1)
	joint.End(nil)
	span.End(nil)
}

func TestWithoutATracerNothingIsMade(t *testing.T) {
	for what, tracer := range map[string]*Tracer{"none": none, "a call that is not traced": func() *Tracer { t, _ := recording(1); return t }()} {
		ctx := t.Context()
		if n := testing.AllocsPerRun(100, func() { untraced(ctx, tracer) }); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
	if none.ServerOptions() != nil || none.DialOptions() != nil || none.Alone() != nil || none.Counts() != (Counts{}) {
		t.Error("no tracer puts something into calls")
	}
	next := http.NewServeMux()
	if none.HTTP(next) != http.Handler(next) {
		t.Error("no tracer puts something around requests")
	}
	ctx, span := none.Rare(t.Context(), "x")
	if ctx != t.Context() || span != (Span{}) {
		t.Error("no tracer makes a span")
	}
}

func BenchmarkWithoutATracer(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		untraced(b.Context(), none)
	}
}

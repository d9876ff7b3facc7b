// Package otlptest is a collector of traces on loopback, for tests: it keeps what comes
// by OTLP over gRPC. Nothing that ships uses it.
package otlptest

import (
	"context"
	"encoding/hex"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/grpc"
)

// patience bounds the wait of a test for spans on a busy machine.
const patience = 60 * time.Second

// Span is one span as it came.
type Span struct {
	Service, Instance string // of its resource
	Name              string
	Trace, ID, Parent string // hex; Parent is empty for a root
	Links             []string
	Attrs             map[string]string // its own; numbers as text
	Failed            bool
}

// Collector keeps spans. Safe for concurrent use.
type Collector struct {
	collector.UnimplementedTraceServiceServer
	Addr string // host:port

	mu    sync.Mutex // guards spans
	spans []Span
}

// New starts a collector that ends with the test.
func New(t *testing.T, opts ...grpc.ServerOption) *Collector {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Collector{Addr: lis.Addr().String()}
	srv := grpc.NewServer(opts...)
	collector.RegisterTraceServiceServer(srv, c)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(lis); err != nil {
			t.Errorf("collector: %v", err)
		}
	}()
	t.Cleanup(func() {
		srv.Stop()
		<-done
	})
	return c
}

// Export implements the service.
func (c *Collector) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range req.GetResourceSpans() {
		of := texts(r.GetResource().GetAttributes())
		for _, scope := range r.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				span := Span{
					Service: of["service.name"], Instance: of["service.instance.id"], Name: s.GetName(),
					Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
					Attrs: texts(s.GetAttributes()), Failed: s.GetStatus().GetCode() == 2,
				}
				for _, l := range s.GetLinks() {
					span.Links = append(span.Links, hex.EncodeToString(l.GetSpanId()))
				}
				c.spans = append(c.spans, span)
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func texts(attrs []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range attrs {
		out[a.GetKey()] = a.GetValue().GetStringValue()
		if _, isText := a.GetValue().GetValue().(*common.AnyValue_StringValue); !isText {
			out[a.GetKey()] = a.GetValue().String()
		}
	}
	return out
}

// Spans are all that came so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Await gives the spans once good says that they are enough.
func (c *Collector) Await(t *testing.T, what string, good func([]Span) bool) []Span {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		spans := c.Spans()
		if good(spans) {
			return spans
		}
		if time.Now().After(deadline) {
			for _, s := range spans {
				t.Logf("%s %s: %s (%s of %s in %s)", s.Service, s.Instance, s.Name, s.ID, s.Parent, s.Trace)
			}
			t.Fatalf("%s: not among the %d spans above", what, len(spans))
		}
		<-time.After(20 * time.Millisecond)
	}
}

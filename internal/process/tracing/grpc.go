package tracing

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// The attributes of a call, by OpenTelemetry's conventions.
const (
	rpcSystem = attribute.Key("rpc.system.name")
	rpcMethod = attribute.Key("rpc.method")
	rpcStatus = attribute.Key("rpc.response.status_code")
)

// w3c reads and writes traceparent and tracestate.
var w3c propagation.TraceContext

// silent calls are never spans: they come by the clock, for as long as a process lives.
func silent(method string) bool {
	return method == pb.Store_Renew_FullMethodName || !strings.HasPrefix(method, "/seqsvr.")
}

// follows says of a method that it is a span only where its caller is traced: the
// cluster's own calls.
func follows(method string) bool {
	return strings.HasPrefix(method, "/"+pb.Store_ServiceDesc.ServiceName+"/") ||
		strings.HasPrefix(method, "/"+pb.Peer_ServiceDesc.ServiceName+"/")
}

// rare says of a method that it is always worth a trace: what operators do.
func rare(method string) bool {
	return strings.HasPrefix(method, "/"+pb.Admin_ServiceDesc.ServiceName+"/") || method == pb.Router_Status_FullMethodName
}

// ServerOptions put a span around each unary call of a server; they go to
// gate.NewServer. None for nil.
func (t *Tracer) ServerOptions() []grpc.ServerOption {
	if t == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(t.serveUnary)}
}

// DialOptions put a span around each unary call that is made for a traced one, and send
// the trace's context along. Streams are left alone,
// because a message carries calls of many traces. None for nil.
func (t *Tracer) DialOptions() []grpc.DialOption {
	if t == nil {
		return nil
	}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(t.callUnary)}
}

func (t *Tracer) serveUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if silent(info.FullMethod) {
		return next(ctx, req)
	}
	ctx = w3c.Extract(ctx, incoming{ctx})
	if follows(info.FullMethod) && !trace.SpanContextFromContext(ctx).IsValid() {
		return next(ctx, req)
	}
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
	if rare(info.FullMethod) {
		opts = append(opts, trace.WithAttributes(RareKey.Bool(true)))
	}
	ctx, span := t.spans.Start(ctx, info.FullMethod[1:], opts...)
	if !span.IsRecording() {
		return next(ctx, req) // with the decision, which goes along
	}
	defer span.End()
	reply, err := next(ctx, req)
	tell(span, info.FullMethod, status.Code(rpc.ToStatus(err)).String(), err)
	return reply, err
}

func (t *Tracer) callUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if silent(method) || !trace.SpanContextFromContext(ctx).IsValid() {
		return call(ctx, method, req, reply, cc, opts...)
	}
	ctx, span := t.spans.Start(ctx, method[1:], trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	out := outgoing{}
	w3c.Inject(ctx, out)
	err := call(metadata.AppendToOutgoingContext(ctx, out.pairs()...), method, req, reply, cc, opts...)
	if span.IsRecording() {
		span.SetAttributes(attribute.String("server.address", cc.Target()))
		tell(span, method, status.Code(err).String(), err)
	}
	return err
}

// tell adds what every call has. The text of an error stays out of it: it may name a
// caller's key.
func tell(span trace.Span, method, code string, err error) {
	span.SetAttributes(rpcSystem.String("grpc"), rpcMethod.String(method[1:]), rpcStatus.String(code))
	if err != nil {
		span.SetStatus(codes.Error, code)
	}
}

// incoming reads the metadata of a call that is served.
type incoming struct{ ctx context.Context }

// Get implements propagation.TextMapCarrier.
func (c incoming) Get(key string) string {
	if values := metadata.ValueFromIncomingContext(c.ctx, key); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Set implements propagation.TextMapCarrier: nothing is written here.
func (incoming) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (incoming) Keys() []string { return w3c.Fields() }

// outgoing collects the metadata of a call that is made.
type outgoing map[string]string

// Get implements propagation.TextMapCarrier.
func (c outgoing) Get(key string) string { return c[key] }

// Set implements propagation.TextMapCarrier.
func (c outgoing) Set(key, value string) { c[key] = value }

// Keys implements propagation.TextMapCarrier.
func (outgoing) Keys() []string { return w3c.Fields() }

func (c outgoing) pairs() []string {
	out := make([]string, 0, 2*len(c))
	for key, value := range c {
		out = append(out, key, value)
	}
	return out
}

package telemetry

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

var (
	callsTotal  = Counter("grpc_server_calls_total", "Calls that ended, streams when they closed.", "method", "code")
	callSeconds = Distribution("grpc_server_call_seconds", "How long unary calls took.", "method")
	openStreams = Gauge("grpc_server_streams", "Streams that are open now.")
)

// Calls counts the calls of a gRPC server by method and code, and times the unary
// ones. Messages on a stream are not looked at: they are the hot path, and the daemon
// that serves them knows what a message was worth.
//
// The labels are bounded by the methods that the server registered and the codes of
// gRPC.
type Calls struct {
	ended   sync.Map // endedKey -> *atomic.Uint64
	took    sync.Map // method -> *Histogram
	streams atomic.Int64
	callers callers
}

type endedKey struct{ method, code string }

// Options put the counting into a server; they go to gate.NewServer.
func (c *Calls) Options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(c.unary), grpc.ChainStreamInterceptor(c.stream)}
}

func (c *Calls) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	begun := time.Now()
	reply, err := next(ctx, req)
	c.Count(info.FullMethod, time.Since(begun), err)
	return reply, err
}

// Count counts a call of a method that has ended. Handlers of streams count the calls that their messages bring.
func (c *Calls) Count(method string, took time.Duration, err error) {
	h, ok := c.took.Load(method)
	if !ok {
		h, _ = c.took.LoadOrStore(method, Durations())
	}
	h.(*Histogram).Observe(took)
	c.end(method, err)
}

func (c *Calls) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	c.streams.Add(1)
	defer c.streams.Add(-1)
	err := next(srv, stream)
	c.end(info.FullMethod, err)
	return err
}

// end counts a call. Errors arrive here as the handlers gave them, before they are
// made fit for the wire.
func (c *Calls) end(method string, err error) {
	code := "OK"
	if err != nil {
		code = status.Code(rpc.ToStatus(err)).String()
	}
	key := endedKey{method, code}
	n, ok := c.ended.Load(key)
	if !ok {
		n, _ = c.ended.LoadOrStore(key, new(atomic.Uint64))
	}
	n.(*atomic.Uint64).Add(1)
}

// Send gives what was counted so far.
func (c *Calls) Send(ch chan<- prometheus.Metric) {
	c.ended.Range(func(key, n any) bool {
		k := key.(endedKey)
		callsTotal.Send(ch, float64(n.(*atomic.Uint64).Load()), k.method, k.code)
		return true
	})
	c.took.Range(func(method, h any) bool {
		callSeconds.Histogram(ch, h.(*Histogram), method.(string))
		return true
	})
	c.callers.send(ch)
	openStreams.Send(ch, float64(c.streams.Load()))
}

// Totals are the calls of methods that begin so: how many ended, how many of them with an
// error that was not the caller's leaving, and how long the unary ones took.
func (c *Calls) Totals(prefix string) (ended, failed uint64, took Buckets) {
	c.ended.Range(func(key, n any) bool {
		if k := key.(endedKey); strings.HasPrefix(k.method, prefix) && k.code != codes.Canceled.String() {
			ended += n.(*atomic.Uint64).Load()
			if k.code != codes.OK.String() {
				failed += n.(*atomic.Uint64).Load()
			}
		}
		return true
	})
	c.took.Range(func(method, h any) bool {
		if strings.HasPrefix(method.(string), prefix) {
			took = took.Plus(h.(*Histogram).Buckets())
		}
		return true
	})
	return ended, failed, took
}

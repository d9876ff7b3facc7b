package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// keepaliveMinimum lets clients ping at twice their rate, so that no client of this module is ever
// sent away for its pings.
const keepaliveMinimum = rpc.KeepaliveTime / 2

// workers are goroutines that serve one call after the other: a fresh one has to grow
// its stack for each, which is a fifth of what a small call costs. Calls that find none
// free get a fresh one.
const workers = 32

// StopBound bounds the time that Serve waits for calls in flight before it cuts them off.
const StopBound = 2 * time.Second

// ServerConfig configures a server. The zero value is usable.
type ServerConfig struct {
	// Logger logs panics and the errors that callers see as "internal error". It may be nil.
	Logger *slog.Logger
	// MaxConcurrentStreams bounds the calls of one connection. Zero means 256. Further calls wait at the
	// peer.
	MaxConcurrentStreams uint32
	// MaxCancels bounds the calls that a peer cancels before they are served, a second; the connection
	// that goes beyond it is closed. Zero means maxCancels. Nodes with a certificate are not bounded.
	MaxCancels int
	// MaxOpen bounds the open calls of all connections without a certificate, and separately those with
	// one. Zero means maxOpen.
	MaxOpen int
	// MaxRecv bounds one request in bytes. Zero means rpc.MaxRecv.
	MaxRecv int
	// ClusterID returns this server's cluster, or "" while it is unknown. Calls that name another cluster
	// are refused with seq.ErrForeignCluster. If nil, there is no check.
	ClusterID func() string
	// Incarnation returns the life of this server's cluster, or the zero value while it is unknown. Calls
	// for another life are refused with seq.ErrForeignCluster or seq.ErrStaleEra. If nil, there is no
	// check.
	Incarnation func() seq.Incarnation
	// Creds secures the listener. If nil, it is plaintext.
	Creds credentials.TransportCredentials
	// Changed is called with each change that was made, and its caller. It must not block. It may be nil.
	Changed func(rpc.Change)
	// Auth checks each call and each message of a stream. If nil, all calls are allowed.
	Auth *auth.Guard
	// Answered receives the time from the arrival of a call until its reply was written, with the caller. If nil,
	// calls are not timed.
	Answered func(caller string, took time.Duration)
	// Refused counts the calls that are refused and the connections that are closed. If nil,
	// none is counted.
	Refused *rpc.Refused
}

// NewServer is a gRPC server with this module's keepalive, message limits, error
// translation and panic recovery. The extra options come after and may override them;
// chained interceptors among them see errors before they are translated.
func NewServer(cfg ServerConfig, extra ...grpc.ServerOption) *Server {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxConcurrentStreams == 0 {
		cfg.MaxConcurrentStreams = 256
	}
	cfg.MaxRecv = cmp.Or(cfg.MaxRecv, rpc.MaxRecv)
	g, creds := newGuard(cfg), countingCreds(cfg.Creds, 2*cfg.MaxRecv, cfg.Auth, newCancels(cfg))
	creds.answered = cfg.Answered
	opts := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(cfg.MaxRecv),
		grpc.MaxHeaderListSize(maxHeader),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.NumStreamWorkers(workers),
		grpc.InitialWindowSize(rpc.StreamWindow),
		grpc.InitialConnWindowSize(rpc.ConnWindow),
		grpc.MaxSendMsgSize(rpc.MaxSend),
		grpc.MaxConcurrentStreams(cfg.MaxConcurrentStreams),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinimum, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: rpc.KeepaliveTime, Timeout: rpc.KeepaliveTimeout, MaxConnectionIdle: idleTimeout}),
		grpc.Creds(creds),
		grpc.InTapHandle(creds.tap),
		experimental.BufferPool(rpc.Buffers),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.ChainUnaryInterceptor(g.unary),
		grpc.ChainStreamInterceptor(g.stream),
	}
	c := rpc.NewChanges(cfg.Logger, cfg.Auth, cfg.Changed)
	opts = append(opts, grpc.ChainUnaryInterceptor(c.Unary), grpc.ChainStreamInterceptor(c.Stream))
	if cfg.Auth != nil {
		a := authorizer{cfg.Auth, cfg.Refused}
		opts = append(opts, grpc.ChainUnaryInterceptor(a.unary), grpc.ChainStreamInterceptor(a.stream))
	}
	opts = append(opts, grpc.ChainUnaryInterceptor(newAside().unary))
	return &Server{grpc.NewServer(append(opts, extra...)...), g}
}

// Guard is the interceptor that NewServer puts before every unary handler, for callers
// that bring a transport of their own.
func Guard(cfg ServerConfig) grpc.UnaryServerInterceptor {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return newGuard(cfg).unary
}

// guard stands between gRPC and the handlers.
type guard struct {
	log     *slog.Logger
	own     *rpc.Addressee
	refused *rpc.Refused
	auth    *auth.Guard
	turns   *Admission // of messages that are unpacked and handled
}

func newGuard(cfg ServerConfig) guard {
	return guard{cfg.Logger, rpc.NewAddressee(cfg.ClusterID, cfg.Incarnation), cfg.Refused, cfg.Auth, NewAdmission(0)}
}

func (g guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (reply any, err error) {
	defer g.finish(ctx, info.FullMethod, &err)
	t := trafficOf(ctx)
	if err := errors.Join(t.full(), g.own.Check(ctx)); err != nil {
		return nil, err
	}
	if reply, err = next(ctx, req); err != nil {
		t.refuse(err)
		return nil, err
	}
	t.serve(ctx)
	// Replies that are done while the peer reads nothing would pile up: what they say is
	// lost, as if the connection were.
	if err := t.full(); err != nil {
		return nil, err
	}
	if !(controlAdmission{}).has(info.FullMethod) {
		g.answer(ctx, t)
	}
	return t.reply(reply), nil
}

func (g guard) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer g.finish(stream.Context(), info.FullMethod, &err)
	t := trafficOf(stream.Context())
	if err := errors.Join(t.full(), g.own.Check(stream.Context())); err != nil {
		return err
	}
	one, err := g.begin(stream.Context(), controlAdmission{}.has(info.FullMethod))
	if err != nil {
		return err
	}
	one.stream = true
	if t == nil {
		return next(srv, stream)
	}
	c := &counted{ServerStream: stream, traffic: t, call: one, begun: time.Now()}
	if t.answers.observe != nil && info.FullMethod == pb.Sequence_Stream_FullMethodName {
		c.messages.caller, c.messages.came = callerName(stream.Context(), g.auth), map[uint64]time.Time{}
	}
	return c.run(func() (err error) {
		defer one.end()
		defer g.finish(stream.Context(), info.FullMethod, &err)
		err = next(srv, c)
		t.refuse(err)
		return err
	})
}

// errPanicked is what came of a handler that did not return. Callers do not see its text.
var errPanicked = errors.New("handler panicked")

// finish must be deferred directly: it recovers.
func (g guard) finish(ctx context.Context, method string, err *error) {
	if p := recover(); p != nil {
		g.log.Error("handler panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		if !recovers {
			panic(p)
		}
		*err = rpc.ToStatus(errPanicked)
		return
	}
	if *err == nil {
		return
	}
	cause := *err
	*err = callStatus(cause)
	g.refused.NoteCall(ctx, cause)
	if status.Code(*err) == codes.Internal {
		g.log.Error("call failed", "method", method, "error", cause)
	}
}

// Serving is the status of what does or does not work.
func Serving(works bool) healthpb.HealthCheckResponse_ServingStatus {
	if works {
		return healthpb.HealthCheckResponse_SERVING
	}
	return healthpb.HealthCheckResponse_NOT_SERVING
}

// RegisterHealth serves grpc.health.v1 and reflection. Call it after the services are registered and before
// Serve. The health of the empty name starts as SERVING. Shutdown on the result tells balancers that the
// process leaves. A service without a health of its own has the health of the empty name. This holds for
// registered services and for the names in more.
func RegisterHealth(srv *Server, more ...string) *health.Server {
	h := health.NewServer()
	healthpb.RegisterHealthServer(srv, newNamedHealth(h, srv, more))
	reflection.Register(srv)
	return h
}

// Serve answers on lis until ctx ends, and then lets calls in flight finish for at
// most StopBound. It closes lis. Nil after ctx ended; else the reason why the
// listener failed. A handler of a long stream should return when its daemon leaves,
// or every stop takes the whole bound.
func Serve(ctx context.Context, srv *Server, lis net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(lis) }()
	select {
	case err := <-failed:
		srv.Stop()
		if ctx.Err() != nil || err == nil {
			return nil
		}
		return fmt.Errorf("serve gRPC on %s: %w", lis.Addr(), err)
	case <-ctx.Done():
	}
	stopped := make(chan struct{})
	go func() {
		srv.GracefulStop()
		close(stopped)
	}()
	bound := time.NewTimer(StopBound)
	defer bound.Stop()
	select {
	case <-stopped:
	case <-bound.C:
		srv.Stop()
		<-stopped
	}
	<-failed
	return nil
}

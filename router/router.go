package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/membership"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/router/line/resp"
	"github.com/seqsvr/seqsvr/seq"
)

// maxRequest bounds one gRPC request in bytes: the largest batch by UID ten times over, or
// one of 10,000 keys of 200 bytes.
const maxRequest = 2 << 20

// Limits of an HTTP connection. The body of the largest batch is well below 1 MiB.
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 5 * time.Second
	writeTimeout  = 10 * time.Second // of an answer, once there is one
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
	maxHTTPConns  = 10_000
	httpShare     = 2 // of the files, in eighths
)

// Router is one router process. Make it with New, run it once with Run.
type Router struct {
	cfg    Config
	sdk    *client.Client
	fronts []*port
	services
	srv    *gate.Server
	health *health.Server
	calls  telemetry.Calls
	http   httpStats
	view   atomic.Pointer[membership.View] // nil without gossip, and before the cluster is known

	inWork  *gate.Admission
	budget  *gate.Budget // of bodies by HTTP, commands and replies by RESP
	maxBody atomic.Int64 // of an HTTP request, in bytes
	resp    *line.Server // idle without a RESP front

	away     atomic.Pointer[error] // why the router takes all AllocSvr for unreachable, otherwise nil
	complete atomic.Bool           // the tables of all Sets that can be reached were known once

	leaving   chan struct{} // closed when Run begins to stop
	leaveOnce sync.Once
	closeOnce sync.Once
}

// New opens the listeners, so that the addresses are known, and does not wait for the
// cluster. seq.ErrBadArgument for a Config that is not sound; else the system's error
// for an address that is taken. Close the router in the end, also after Run.
func New(cfg Config) (*Router, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Name == "" {
		cfg.Name = "router-" + seq.NewSession().String()[:8]
	}
	if cfg.Refused == nil {
		cfg.Refused = rpc.NewRefused(cfg.Logger)
	}
	cfg.TLS.CountRefused(cfg.Refused)
	r := &Router{cfg: cfg, budget: gate.NewBudget(budget), leaving: make(chan struct{})}
	r.fronts = r.ports()
	creds, err := cfg.TLS.ServerCreds(rpc.OptionalClients)
	if err != nil {
		return nil, fmt.Errorf("router: %w", err)
	}
	if err := r.listen(); err != nil {
		return nil, err
	}
	r.sdk, err = client.New(context.Background(), client.Config{
		Addrs: cfg.Allocs, ClusterID: cfg.ClusterID, Timeout: cfg.Timeout, AttemptTimeout: cfg.AttemptTimeout, SuspectAfter: cfg.SuspectAfter,
		AllowUnordered: true, Lazy: true, Logger: cfg.Logger, DialOptions: append(cfg.TLS.DialSets(auth.Alloc), cfg.Traces.DialOptions()...),
		Alone: alone(cfg.Traces.Alone()), Fallback: cfg.fallback(),
	})
	if err != nil {
		r.unlisten()
		return nil, fmt.Errorf("router: %w", err)
	}
	r.srv = gate.NewServer(gate.ServerConfig{Logger: cfg.Logger, ClusterID: r.sdk.Caller().Table().ClusterID, Incarnation: r.sdk.Caller().Table().Incarnation, Creds: creds, Auth: cfg.Guard, Refused: cfg.Refused, Answered: r.calls.Answered, MaxRecv: maxRequest,
		MaxConcurrentStreams: maxCalls(cmp.Or(cfg.MaxInWork, DefaultMaxInWork)), MaxCancels: maxCancels, MaxOpen: maxOpen},
		append(cfg.Traces.ServerOptions(), r.calls.Options()...)...)
	cfg.TLS.WarnExposed(cfg.Logger, r.addrs()...)
	r.inWork = gate.NewAdmission(DefaultMaxInWork)
	calls := newAdmitted(r.sdk, r.inWork)
	r.resp = line.New(resp.New(), calls, cfg.Logger)
	r.resp.Authorize(cfg.Guard, cfg.TLS.Evidence)
	r.resp.CountRefused(cfg.Refused)
	r.resp.Share(r.budget)
	if err := r.SetLimits(cfg); err != nil {
		r.unlisten()
		return nil, errors.Join(err, r.sdk.Close())
	}
	r.services = servicesOf(calls, r.leaving)
	r.services.ids.guard, r.services.seqs.zone = cfg.Guard, cfg.Zone
	r.services.register(r.srv)
	pb.RegisterRouterServer(r.srv, statusServer{cfg: &r.cfg})
	r.health = gate.RegisterHealth(r.srv)
	r.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	r.health.SetServingStatus(rpc.QuorumHealth, healthpb.HealthCheckResponse_SERVING)
	return r, nil
}

// alone says which calls go by themselves: those that traced says so of, and those that tell
// the AllocSvr of their caller.
func alone(traced func(context.Context) bool) func(context.Context) bool {
	return func(ctx context.Context) bool { return rpc.Relayed(ctx) || traced != nil && traced(ctx) }
}

// Register serves what the gRPC front of a router does over a client of the caller's, for
// callers that bring a network of their own. It takes as much work in as a router without
// limits of its own, and never leaves; the client stays the caller's to close.
func Register(to grpc.ServiceRegistrar, sdk *client.Client) {
	servicesOf(newAdmitted(sdk, gate.NewAdmission(DefaultMaxInWork)), nil).register(to)
}

// services are the methods that callers reach by gRPC and HTTP. They admit their calls, so
// that both fronts do.
type services struct {
	seqs *server
	ids  *snowflakeServer
	segs *segmentServer
}

func servicesOf(a admitted, leaving <-chan struct{}) services {
	return services{
		seqs: &server{sdk: a.Client, door: a.door, leaving: leaving, watches: a.watches},
		ids:  &snowflakeServer{sdk: a, any: pb.NewSnowflakeClient(a.Any())},
		segs: &segmentServer{sdk: a, any: pb.NewSegmentClient(a.AnyOfRoot())},
	}
}

func (s services) register(to grpc.ServiceRegistrar) {
	pb.RegisterSequenceServer(to, s.seqs)
	pb.RegisterSnowflakeServer(to, s.ids)
	pb.RegisterSegmentServer(to, s.segs)
}

// Run serves until ctx ends, then lets calls in flight finish for at most
// gate.StopBound, and returns nil. Otherwise it returns why a front failed.
func (r *Router) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var tasks sync.WaitGroup
	failed := make(chan error, len(r.fronts)+1) // the fronts and the gossip
	start := func(part func(context.Context) error) {
		tasks.Go(func() {
			if err := part(ctx); err != nil {
				failed <- err
			}
			stop() // one part's end is the end of all
		})
	}
	tasks.Go(func() {
		<-ctx.Done()
		r.leave()
	})
	for _, p := range r.fronts {
		start(func(ctx context.Context) error { return p.serve(ctx, p.lis) })
	}
	if r.cfg.GossipListen != "" {
		start(r.gossip)
	}
	tasks.Go(func() { r.watchCluster(ctx) })
	tasks.Go(func() { r.watchQuorum(ctx) })
	r.cfg.Logger.Info("router listens", r.logged()...)
	tasks.Wait()
	close(failed)
	var errs []error
	for err := range failed {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// serveHTTP is the HTTP front of a listener.
func (r *Router) serveHTTP(ctx context.Context, lis net.Listener) error {
	srv := &http.Server{
		Handler:           r.cfg.Traces.HTTP(gate.EndTests(newFront(r)), "/", "/livez", "/readyz", "/openapi.yaml"),
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(r.cfg.Logger.Handler(), slog.LevelWarn),
	}
	gate.NewSeats(gate.FilesFor(maxHTTPConns, httpShare), r.cfg.Refused).Guard(srv)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(lis) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP on %s: %w", lis.Addr(), err)
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.Background(), gate.StopBound)
	defer cancel()
	if srv.Shutdown(bound) != nil {
		_ = srv.Close()
	}
	<-failed
	return nil
}

// leave tells balancers, and ends the streams: their callers turn elsewhere.
func (r *Router) leave() {
	r.leaveOnce.Do(func() {
		close(r.leaving)
		r.health.Shutdown()
	})
}

// Close frees the listeners and the connections. After Run has returned, or instead
// of Run. It is safe to call twice.
func (r *Router) Close() error {
	r.closeOnce.Do(func() {
		r.leave()
		r.srv.Stop()
		r.unlisten()
		_ = r.sdk.Close()
	})
	return nil
}

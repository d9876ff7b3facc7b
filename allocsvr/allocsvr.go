package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seqsvr/seqsvr/allocsvr/api"
	"github.com/seqsvr/seqsvr/allocsvr/globalid"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/audit"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/membership"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Bounds of the start and the end of a server.
const (
	connectPatience = 10 * time.Second       // one try to find a quorum of stores at start
	leavePatience   = 15 * time.Second       // for handing everything over
	linger          = 100 * time.Millisecond // for answers that name the new owner
)

// parkedFile is the name of the file of parked counters in Config.DataDir.
const parkedFile = "parked"

// Server is one AllocSvr. It listens from New on, and serves from Run on.
type Server struct {
	cfg    Config
	lis    net.Listener
	addr   string
	secret atomic.Pointer[seq.Secret] // of the session

	stop context.CancelCauseFunc
	life context.Context
	done chan struct{}

	creds   credentials.TransportCredentials // of the listener; nil means plaintext
	calls   telemetry.Calls
	audit   *audit.Log // if nil, there is no audit
	regions []globalid.Region
	limits  *api.Limits
	waiting atomic.Pointer[starting]  // nil before Run
	parts   atomic.Pointer[assembled] // nil until the stores are reached
}

// New checks the configuration and listens. It does not need the stores yet.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Refused == nil {
		cfg.Refused = rpc.NewRefused(cfg.Logger)
	}
	cfg.TLS.CountRefused(cfg.Refused)
	creds, err := cfg.TLS.ServerCreds(rpc.RequireClients)
	if err != nil {
		return nil, err
	}
	lis, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for gRPC (--listen): %w", err)
	}
	if err := usable(cfg.DataDir); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory (--data-dir): %w", err), lis.Close())
	}
	var ids *audit.Log
	if cfg.IDAudit.Path != "" {
		if ids, err = audit.Open(cfg.IDAudit, cfg.Logger); err != nil {
			return nil, errors.Join(err, lis.Close())
		}
	}
	s := &Server{cfg: cfg, audit: ids, creds: creds, lis: lis, addr: lis.Addr().String(), done: make(chan struct{}),
		limits: cfg.limits()}
	if cfg.Advertise != "" {
		s.addr = cfg.Advertise
	}
	cfg.TLS.WarnExposed(cfg.Logger, lis.Addr().String())
	s.begin(cfg.Secret)
	s.life, s.stop = context.WithCancelCause(context.Background())
	return s, nil
}

// ReopenAudit closes the file of the ID audit and opens its path again.
func (s *Server) ReopenAudit() { s.audit.Reopen() }

// auditPatience bounds how long the end of Run waits for the disk of the audit.
const auditPatience = 2 * time.Second

// writeAudit writes the audit until stop is called. It also writes the IDs that are handed out at the end.
func (s *Server) writeAudit() (stop func()) {
	life, end := context.WithCancel(context.Background())
	written := make(chan struct{})
	go func() {
		defer close(written)
		s.audit.Run(life)
	}()
	return func() {
		end()
		select {
		case <-written:
		case <-time.After(auditPatience):
			s.cfg.Logger.Warn("the end of the ID audit is not written", "waited", auditPatience)
		}
	}
}

// usable makes the directory and writes a test file there, because an error is better found now than when
// the counters are parked.
func usable(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	probe, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// SetLimits changes MaxInWork, MaxStreamWaits and UIDMemory to the values of cfg while the server runs. If
// one is not valid, it changes none and returns seq.ErrBadArgument. Admitted calls stay.
func (s *Server) SetLimits(cfg Config) error {
	return s.limits.Set(cfg.MaxInWork, cfg.MaxStreamWaits, cfg.UIDMemory)
}

// dialPeer connects over the network to nodes of the same cluster.
func (s *Server) dialPeer(own *rpc.Target) func(addr string) (api.PeerConn, error) {
	options := append(s.dialOptions(auth.Alloc), rpc.SayTarget(func() *rpc.Target { return own }))
	return func(addr string) (api.PeerConn, error) { return rpc.Dial(addr, options...) }
}

// dialSet connects to an AllocSvr of another Set.
func (s *Server) dialSet(addr string) (api.PeerConn, error) {
	return rpc.Dial(addr, append(s.cfg.TLS.DialSets(auth.Alloc), s.cfg.Traces.DialOptions()...)...)
}

// dialOptions returns the options for connections to servers of a role.
func (s *Server) dialOptions(role auth.Role) []grpc.DialOption {
	return append(s.cfg.TLS.DialOptions(role), s.cfg.Traces.DialOptions()...)
}

// exposed reports whether other machines reach this node in plaintext.
func (s *Server) exposed() bool { return len(s.cfg.TLS.Exposed(s.lis.Addr().String())) > 0 }

// Addr returns the address at which callers and peers reach this node.
func (s *Server) Addr() string { return s.addr }

// Session returns the current session. It changes only after the stores have ended it.
func (s *Server) Session() seq.Session { return s.secret.Load().Session() }

// begin sets the secret of the session. If it is zero, begin draws a new secret.
func (s *Server) begin(secret seq.Secret) {
	if secret.IsZero() {
		secret = seq.NewSecret(s.cfg.Name)
	}
	s.secret.Store(&secret)
}

// errClosed ends a server without handing anything over.
var errClosed = errors.New("closed")

// Close ends the server at once, as a crash would. It hands nothing over.
func (s *Server) Close() {
	s.stop(errClosed)
	<-s.done
}

// Run serves until ctx ends, then hands every section over and leaves. If the stores end its session
// meanwhile, other nodes take its sections over as after a crash, and Run goes on under a new session.
// Below a supervising parent, which knows the session, Run returns seq.ErrSessionEnded instead. Other
// errors come from the stores at start (foreign cluster, name taken, bad lease), from the listener, or from
// a broken invariant.
func (s *Server) Run(ctx context.Context) error {
	defer close(s.done)
	defer s.lis.Close()
	if s.audit != nil {
		defer s.writeAudit()()
	}
	regions, err := dialRegions(s.cfg)
	if err != nil {
		return err
	}
	defer func() { _ = regions.close() }() // nothing is lost with a connection that will not close
	s.regions = regions.all()
	for {
		err := s.runSession(ctx)
		switch {
		case errors.Is(err, errClosed):
			return nil
		case ctx.Err() != nil || s.life.Err() != nil || !errors.Is(err, seq.ErrSessionEnded) || !s.cfg.Secret.IsZero():
			return err
		}
		ended := s.Session()
		s.begin(seq.Secret{})
		s.cfg.Logger.Warn("session was ended, another begins", "session", ended, "next", s.Session(), "reason", err)
	}
}

// runSession connects to the stores and serves until the session, ctx or the server ends.
func (s *Server) runSession(ctx context.Context) error {
	waiting := s.startAnswering()
	s.waiting.Store(waiting)
	// The parts outlive ctx: they are needed to hand over.
	found, read, err := s.connect(ctx, waiting)
	waiting.stop()
	if err != nil {
		return err
	}
	life, cancel := context.WithCancelCause(s.life)
	defer cancel(nil)
	parts, err := s.assemble(found, read, cancel)
	if err != nil {
		return errors.Join(err, found.close())
	}
	defer func() { _ = parts.follow.Close() }() // nothing is lost with a connection that will not close
	defer parts.close()
	s.parts.Store(parts)
	defer s.parts.Store(nil)
	lis := borrowed{s.lis}
	defer lis.giveBack()
	var wg sync.WaitGroup
	start := func(run func(context.Context) error) {
		wg.Go(func() {
			if err := run(life); err != nil && life.Err() == nil {
				cancel(err)
			}
		})
	}
	for _, run := range parts.runs() {
		start(run)
	}
	start(parts.follow.Run)
	start(parts.requireUsed)
	start(func(context.Context) error {
		if err := parts.srv.Serve(lis); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("serve gRPC: %w", err)
		}
		return nil
	})
	start(func(ctx context.Context) error { return s.reportHealth(ctx, parts) })
	if parts.view != nil {
		start(func(ctx context.Context) error { return followGossip(ctx, parts.alloc, parts.view) })
	}
	select {
	case <-ctx.Done():
		s.leave(parts)
	case <-life.Done():
	}
	err = context.Cause(life)
	cancel(nil)
	parts.srv.Stop()
	wg.Wait()
	return err
}

// assembled holds the node and the other parts of a running server.
type assembled struct {
	*Node
	srv    *gate.Server
	health *health.Server
	view   *membership.View
	follow follower
}

func (p *assembled) close() {
	p.Node.Close()
	if p.view != nil {
		p.view.Close()
	}
}

func (s *Server) assemble(found backend, read known, stop context.CancelCauseFunc) (*assembled, error) {
	p := &assembled{}
	p.follow = found.follow(func(list quorum.MemberList, stores []quorum.NamedStore) error {
		return p.Reconfigure(list, stores)
	})
	node, err := NewNode(s.cfg, Wiring{
		Stale: p.follow.Kick, Tell: p.follow.Extend, Identity: found.identity, Stores: found.stores, Addr: s.addr, Secret: *s.secret.Load(),
		Dial: s.dialPeer(rpc.NewTarget(found.identity.Ref.Cluster, found.identity.Incarnation)), DialSet: s.dialSet, Clock: clock.Boot(), Wall: time.Now, Stop: stop, Keys: read.keys, First: read.first, Parked: s.parked(), Limits: s.limits, Audit: s.audit, Regions: s.regions,
	})
	if err != nil {
		return nil, err
	}
	p.Node = node
	p.follow.OnSpaces(node.Extend)
	node.require = p.follow.Require
	if p.view, err = s.startGossip(found.identity.Ref.Cluster, found.identity.Incarnation); err != nil {
		return nil, err
	}
	s.register(p)
	return p, nil
}

func (s *Server) register(p *assembled) {
	p.srv = gate.NewServer(gate.ServerConfig{Logger: s.cfg.Logger, ClusterID: p.ClusterID, Incarnation: p.Incarnation, Creds: s.creds, Auth: s.cfg.Guard, Refused: s.cfg.Refused, Answered: s.calls.Answered, Changed: p.alloc.changed},
		append(s.cfg.Traces.ServerOptions(), s.calls.Options()...)...)
	p.Register(p.srv)
	admin := p.admin(p.view, p.follow.describe)
	admin.Exposed, admin.Refused = s.exposed(), s.cfg.Refused
	if s.cfg.onEtcd() { // before anything is decided
		admin.Growth.Decide = func(context.Context, seq.Mapping, seq.Space) (seq.Mapping, error) { return seq.Mapping{}, errNoGrowth }
	}
	pb.RegisterAdminServer(p.srv, admin)
	p.health = gate.RegisterHealth(p.srv)
	p.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
}

func (s *Server) parked() string {
	if s.cfg.DataDir == "" {
		return ""
	}
	return filepath.Join(s.cfg.DataDir, parkedFile)
}

// leave hands every section over. The node cannot be used afterwards.
func (s *Server) leave(p *assembled) {
	ctx, cancel := context.WithTimeout(s.life, leavePatience)
	defer cancel()
	p.health.Shutdown()
	p.Leave(ctx)
	if p.view != nil {
		bye, done := context.WithTimeout(ctx, time.Second)
		if err := p.view.Leave(bye); err != nil {
			s.cfg.Logger.Debug("membership not told", "error", err)
		}
		done()
	}
	select {
	case <-ctx.Done():
	case <-time.After(linger):
	}
}

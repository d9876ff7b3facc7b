package console

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/browser"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// DefaultAddr is where `seqctl dev` shows the console.
const DefaultAddr = "127.0.0.1:7470"

// Config is what a console shows, and to whom. Server and Client are needed.
type Config struct {
	Server string         // the process that shows it: router-1
	Client *client.Client // knows the route table, and looks UIDs up; its owner closes it
	Dial   []grpc.DialOption
	// Names are those that requests may be addressed to.
	Names browser.Names
	// Guard checks the caller, as one of Admin's methods. If nil, every caller may look.
	Guard *auth.Guard
	// Evidence is what a TLS connection proved; nil without TLS.
	Evidence func(*tls.ConnectionState) auth.Evidence
	// Calls returns what callers of this process saw since its start; the routers of the cluster tell theirs. If
	// nil, those alone are shown.
	Calls func() Calls
	// Drill returns the drill that this process runs, whose calls alone are shown then. If nil, there is no drill.
	Drill func() *Drill
	// Refused counts the requests that are refused. If nil, none is counted.
	Refused *rpc.Refused
	Logger  *slog.Logger // if nil, nothing is logged
}

// Calls are totals since the start of a process, of its fronts together.
type Calls struct {
	Ended, Failed uint64
	Took          telemetry.Buckets
}

// ToProto encodes the calls.
func (c Calls) ToProto() *pb.Calls {
	bounds, buckets := c.Took.Values()
	return &pb.Calls{Ended: c.Ended, Failed: c.Failed, Bounds: bounds, Buckets: buckets}
}

// callsFromProto decodes the calls of another router.
func callsFromProto(p *pb.Calls) Calls {
	return Calls{p.GetEnded(), p.GetFailed(), telemetry.NewBuckets(p.GetBounds(), p.GetBuckets())}
}

// Console serves the pages. Make it with New.
type Console struct {
	cfg     Config
	shared  *collector
	streams *gate.Budget  // that are open, by address
	lookups chan struct{} // has something for each that is under way
	// streamLife is the constant, but in tests.
	streamLife time.Duration
	http.Handler
}

// New makes a console that asks no node before a page is open.
func New(cfg Config) *Console {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Console{cfg: cfg, lookups: make(chan struct{}, maxLookups), streams: gate.NewBudget(maxStreams), streamLife: streamLife}
	g := newGatherer(cfg)
	c.shared = newCollector(g.gather, g.conns.Close)
	c.Handler = c.routes()
	return c
}

// Bounds of a connection. A stream has none for its length: each message has its own.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = time.Minute
	writeTimeout  = 10 * time.Second // of one answer, or of one message of a stream
	maxHeader     = 16 << 10
	maxConns      = 512
	filesShare    = 1 // in eighths
)

// Serve answers on lis until ctx ends, and closes it. Streams end with ctx.
func (c *Console) Serve(ctx context.Context, lis net.Listener) error {
	srv := &http.Server{
		Handler: gate.EndTests(c), BaseContext: func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(c.cfg.Logger.Handler(), slog.LevelDebug), // a browser that left is no news
	}
	gate.NewSeats(gate.FilesFor(maxConns, filesShare), c.cfg.Refused).Guard(srv)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(lis) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve the console on %s: %w", lis.Addr(), err)
	case <-ctx.Done():
	}
	_ = srv.Close() // nothing here is worth waiting for
	c.Close()
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close ends the collector. It is safe to call twice, and after Serve.
func (c *Console) Close() { c.shared.close() }

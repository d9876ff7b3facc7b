package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/base/config"
	"github.com/seqsvr/seqsvr/internal/base/hostport"
	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
	"github.com/seqsvr/seqsvr/internal/process/tracing/otlp"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/membership"
	"github.com/seqsvr/seqsvr/seq"
)

// Common are the settings that every daemon has. Add them to a flag set, load that,
// then call Open.
type Common struct {
	Admin     string // host:port of /metrics, /livez and /readyz; if empty, they are off
	Pprof     bool   // serve profiles there too
	Memory    Memory // set by Open
	LogLevel  string // debug, info, warn or error
	LogFormat string // text or json

	TLSFiles rpc.TLSFiles // of all listeners but admin's, and of connections to others
	TLS      *rpc.TLS     // set by Open; nil means plaintext

	memoryFlag uint64

	authMode, policyFile, plaintext string
	Guard                           *auth.Guard // set by OpenAuth; nil with --auth off

	GossipKeysFile string
	GossipKeys     *membership.Keys // set by Open; nil means plaintext

	TraceEndpoint string
	TraceSample   float64
	TraceCA       string
	Traces        *tracing.Tracer // set by Serve, before it calls start; if nil, tracing is off
	exporter      *otlp.Exporter  // behind Traces

	Logger *slog.Logger   // set by Open
	level  *slog.LevelVar // of Logger
	output *Output        // behind Logger; if nil, Logger writes to its writer

	// Reread loads the settings of a fresh Common from the same sources. If nil, SIGHUP changes nothing.
	Reread func() (*Common, error)
	// Live takes new values of flags, as text, that may change while the daemon runs. It
	// is filled before Serve starts the service, or by start itself.
	Live map[string]func(text string) error
	// Hangup is called at each SIGHUP, also when the settings cannot be read. If nil, there
	// is nothing more to do. It is set as Live is.
	Hangup func()

	fs  *pflag.FlagSet   // that Flags was called with
	hup <-chan os.Signal // in place of SIGHUP, for tests
}

// Flags adds the settings to a daemon's flags; admin is its default admin address.
func (c *Common) Flags(fs *pflag.FlagSet, admin string) {
	c.fs = fs
	fs.StringVar(&c.Admin, "admin", admin, "`address` of /metrics, /livez and /readyz, host:port; empty: none")
	fs.BoolVar(&c.Pprof, "pprof", false, "serve profiles below /debug/pprof/ of the admin address")
	fs.StringVar(&c.TLSFiles.Cert, "tls-cert", "", "PEM `file` of this process's certificate chain, for what it listens on and connects to; read again when it changes; empty: plaintext")
	fs.StringVar(&c.TLSFiles.Key, "tls-key", "", "PEM `file` of the certificate's key; required with --tls-cert")
	fs.StringVar(&c.TLSFiles.CA, "tls-ca", "", "PEM `file` of the CAs that the other side's certificates must be signed by; empty: the system's, and clients are asked for none")
	fs.Uint64Var(&c.memoryFlag, "memory", 0, "`bytes` that this process may take, at least 67108864: the runtime keeps within nine tenths of it, and what callers can fill has shares of it; 0: the limit of the cgroup, else the machine's memory")
	c.authFlags(fs)
	c.keysFlags(fs)
	c.traceFlags(fs)
	fs.StringVar(&c.LogLevel, "log-level", "info", "debug, info, warn or error")
	fs.StringVar(&c.LogFormat, "log-format", "text", "text or json")
}

// Shared gives the settings that every daemon has, of a daemon's own, in which c stands.
func (c *Common) Shared() *Common { return c }

// Load fills the flag set that Flags was called with from args, the environment and the
// file, and opens the settings. ErrUsage.
func (c *Common) Load(args []string, env func(string) (string, bool), log io.Writer) error {
	c.fs.SetOutput(log)
	if err := config.Load(c.fs, args, env); err != nil {
		return Usage(err)
	}
	if c.fs.NArg() > 0 || c.fs.ArgsLenAtDash() >= 0 {
		return Usage(fmt.Errorf("arguments %q: expected flags only", args))
	}
	return c.Open(log)
}

// RunLoaded is the life of a daemon whose settings load reads: the verb config answers for
// them, and SIGHUP reads them again.
func RunLoaded[S interface{ Shared() *Common }](name string, args []string, stdout io.Writer, load func(args []string) (S, error), serve func(S) error) error {
	reread := func(args []string) (*Common, error) {
		s, err := load(args)
		if err != nil {
			return nil, err
		}
		return s.Shared(), nil
	}
	if err := config.CheckEnvironment(os.Environ()); err != nil {
		return Usage(err)
	}
	if len(args) > 0 && args[0] == "config" {
		return ConfigVerb(name, args[1:], stdout, reread)
	}
	s, err := load(args)
	if err != nil {
		return err
	}
	s.Shared().Reread = func() (*Common, error) { return reread(args) }
	return serve(s)
}

// Open checks the settings and makes the logger, which writes to w. ErrUsage.
func (c *Common) Open(w io.Writer) (err error) {
	if c.Admin != "" {
		if err := hostport.Listen(c.Admin); err != nil {
			return Usage(fmt.Errorf("admin address %w", err))
		}
	}
	if err := c.openMemory(); err != nil {
		return err
	}
	c.output, _ = w.(*Output)
	if c.Logger, c.level, err = NewLogger(w, c.LogLevel, c.LogFormat); err != nil {
		return err
	}
	if c.TLSFiles != (rpc.TLSFiles{}) && c.TLSFiles.Cert == "" {
		return Usage(fmt.Errorf("%w: --tls-cert and --tls-key are needed for what this daemon listens on", rpc.ErrTLS))
	}
	if c.TLS, err = rpc.NewTLS(c.TLSFiles, c.Logger); err != nil {
		return Usage(err)
	}
	if err := c.checkTraces(); err != nil {
		return err
	}
	return c.openKeys()
}

// Service is a daemon's server.
type Service interface {
	telemetry.Subject
	// Run serves until ctx ends, and returns after it has drained.
	Run(ctx context.Context) error
}

// Serve runs a daemon beside its admin listener. The admin address is bound before
// start is called: one that is taken stops the daemon before it has touched anything.
// The listener answers while start runs, which may load for long, and while the service drains: /livez
// is ok, and /readyz says what is missing.
func (c *Common) Serve(ctx context.Context, name string, start func() (Service, error)) error {
	var lis net.Listener
	if c.Admin != "" {
		var err error
		if lis, err = net.Listen("tcp", c.Admin); err != nil {
			return fmt.Errorf("listen for admin (--admin): %w", err)
		}
	}
	c.boundRuntime()
	signals, unheard := c.hangups()
	defer unheard()
	flush, err := c.startTraces(name)
	if err != nil {
		if lis != nil {
			_ = lis.Close()
		}
		return err
	}
	defer flush()
	subject := &subject{ctx: ctx}
	if lis != nil {
		defer c.serveAdmin(ctx, c.admin(name, subject), lis)()
	}
	service, err := start()
	if err != nil {
		return err
	}
	defer c.follow(ctx, signals)()
	subject.service.Store(&service)
	return service.Run(ctx)
}

// serveAdmin answers on lis until the result is called.
func (c *Common) serveAdmin(ctx context.Context, admin telemetry.Admin, lis net.Listener) (end func()) {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	var task sync.WaitGroup
	task.Go(func() {
		if err := admin.Serve(life, lis); err != nil {
			c.Logger.Error("admin listener failed, the daemon goes on without it", "error", err)
		}
	})
	c.Logger.Info("admin listens", "addr", lis.Addr().String(), "pprof", c.Pprof)
	return func() {
		stop()
		task.Wait()
	}
}

func (c *Common) admin(daemon string, of telemetry.Subject) telemetry.Admin {
	return telemetry.Admin{Daemon: daemon, Subject: of, Pprof: c.Pprof, Logger: c.Logger, Dropped: c.output.Dropped}
}

// errStarting: the service is not there yet.
var errStarting = errors.New("starting: the log says how far it has come")

// subject is a service that is not ready before it is there, nor once its context has ended.
type subject struct {
	ctx     context.Context
	service atomic.Pointer[Service] // nil until start has made it
}

// Ready implements telemetry.Subject.
func (d *subject) Ready() error {
	service := d.service.Load()
	switch {
	case d.ctx.Err() != nil:
		return seq.ErrShuttingDown
	case service == nil:
		return errStarting
	}
	return (*service).Ready()
}

// Describe implements prometheus.Collector; see telemetry.Func.
func (d *subject) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. There is nothing to collect before the service is there.
func (d *subject) Collect(ch chan<- prometheus.Metric) {
	if service := d.service.Load(); service != nil {
		(*service).Collect(ch)
	}
}

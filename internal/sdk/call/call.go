package call

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/sdk/route"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
)

// Config is what a Caller has of client.Config, which says what the fields are.
type Config struct {
	Addrs          []string
	ClusterID      string
	Zone           string
	Indirect       bool
	AllowUnordered bool
	Timeout        time.Duration
	AttemptTimeout time.Duration
	SuspectAfter   time.Duration
	MaxQueue       int
	Alone          func(context.Context) bool
	Logger         *slog.Logger
	DialOptions    []grpc.DialOption
}

// Caller makes calls to one cluster. It is safe for concurrent use.
type Caller struct {
	cfg     Config
	table   *route.Table
	streams stream.Config
	counts  counts

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup // the Client's own goroutines
}

// counts are the Client's own, none of them on the path of a call that succeeds at once.
type counts struct{ retries, pauses atomic.Uint64 }

// New makes a Caller, which begins to look for its first route table. All fields of cfg have their
// values. Close it in the end, also after an error.
func New(cfg Config) (*Caller, error) {
	c := &Caller{cfg: cfg}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.streams = stream.Config{Context: c.ctx, Go: c.tasks.Go, AttemptTimeout: cfg.AttemptTimeout, SuspectAfter: cfg.SuspectAfter, MaxQueue: cfg.MaxQueue}
	var err error
	if c.table, err = route.New(c.routing()); err != nil {
		return c, err
	}
	c.table.Begin()
	c.tasks.Go(c.sweepLoop)
	if cfg.SuspectAfter > 0 {
		c.tasks.Go(c.listenLoop)
	}
	return c, nil
}

// routing is what the route table needs of the Caller.
func (c *Caller) routing() route.Config {
	return route.Config{
		Addrs: c.cfg.Addrs, ClusterID: c.cfg.ClusterID, Zone: c.cfg.Zone, Indirect: c.cfg.Indirect,
		Timeout: c.cfg.Timeout, AttemptTimeout: c.cfg.AttemptTimeout, Logger: c.cfg.Logger,
		Context: c.ctx, Go: c.tasks.Go, Dial: c.connect, Watch: func(of *route.Set) route.Care { return newCare(c, of) },
	}
}

// Table is the route table that calls go by.
func (c *Caller) Table() *route.Table { return c.table }

// Context ends with Close.
func (c *Caller) Context() context.Context { return c.ctx }

// Go starts a goroutine for which Close waits. It is to end with Context.
func (c *Caller) Go(do func()) { c.tasks.Go(do) }

// Counts are the failed attempts that were made again, and the pauses of calls that had no server left to ask.
func (c *Caller) Counts() (retries, pauses uint64) {
	return c.counts.retries.Load(), c.counts.pauses.Load()
}

// Reach waits for the first route table as a call does: it also ends with seq.ErrNoQuorum once all
// Addrs that answer say that they have no quorum of stores.
func (c *Caller) Reach(ctx context.Context) error {
	_, err := c.table.Current(ctx)
	return err
}

// Close ends all calls in flight with ErrClosed, and waits for the goroutines. Calls after it
// fail with ErrClosed.
func (c *Caller) Close() {
	c.cancel()
	c.table.Close()
	c.tasks.Wait()
}

// begin is what a call begins with: its deadline, and the view.
func (c *Caller) begin(ctx context.Context) (context.Context, context.CancelFunc, *route.View, error) {
	ctx, cancel := c.Within(ctx)
	v, err := (*route.View)(nil), ctx.Err()
	if err == nil {
		v, err = c.table.Current(ctx)
	}
	return ctx, cancel, v, err
}

// Within bounds a context without a deadline by Config.Timeout.
func (c *Caller) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.cfg.Timeout)
}

package client

import (
	"context"
	"fmt"
	"sync"

	"github.com/seqsvr/seqsvr/internal/sdk/route"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
)

// Key names one sequence: of a UID, or made by StringKey.
type Key = seq.Key

// StringKey is the sequence of a string key: 1 to seq.MaxKey bytes of UTF-8. It is sent as
// it is, since AllocSvr alone know under which secret keys are hashed.
func StringKey(space, key string) Key { return seq.StringKey(space, key) }

// Range is the numbers First to Last, inclusive and contiguous, taken for one key. One that is
// Unordered needs Config.AllowUnordered.
type Range = seq.Range

// Client talks to one cluster. It is safe for concurrent use; make one and share it.
type Client struct {
	cfg       Config
	table     *route.Table
	ids       idQueues
	fallbacks fallbacks
	lent      lent
	counts    counts
	streams   stream.Config

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup // the Client's own goroutines
}

// New makes a Client and waits for its first route table until ctx ends, or
// Config.Timeout if it has no deadline; with Config.Lazy it does not wait.
// seq.ErrBadArgument for a Config that is not sound, seq.ErrNoRoute when no address
// gave a table, seq.ErrForeignCluster when one belongs to another cluster than
// Config.ClusterID. Close the Client in the end.
func New(ctx context.Context, cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("new client: %w", err)
	}
	c := &Client{cfg: cfg}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.streams = stream.Config{Context: c.ctx, Go: c.tasks.Go, AttemptTimeout: cfg.AttemptTimeout, MaxQueue: cfg.MaxQueue}
	c.ids.open(c)
	if c.table, err = route.New(c.routing()); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("new client: %w", err)
	}
	c.table.Begin()
	c.tasks.Go(c.sweepLoop)
	c.fallbacks = openFallbacks(c)
	if cfg.Lazy {
		return c, nil
	}
	if err := c.Ready(ctx); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("new client: %w", err)
	}
	return c, nil
}

// Ready waits for the first route table until ctx ends, or Config.Timeout if ctx has
// no deadline. seq.ErrForeignCluster is returned as soon as all addresses of Config said that
// they belong to another cluster. The error wraps the last reason why there is no table.
func (c *Client) Ready(ctx context.Context) error { return c.table.Await(ctx, nil) }

// Reach is Ready for callers that wait as a call does: it also ends with
// seq.ErrNoQuorum once all Addrs that answer say that they have no quorum of stores.
func (c *Client) Reach(ctx context.Context) error {
	_, err := c.table.Current(ctx)
	return err
}

// Close ends all calls in flight with ErrClosed and waits for the Client's own
// goroutines. Before that it gives back the worker ids that it was lent, which takes a
// second at most. Calls after it fail with ErrClosed. It is safe to call twice.
func (c *Client) Close() error {
	c.lent.close(c)
	c.cancel()
	c.ids.close()
	c.table.Close()
	c.tasks.Wait()
	return nil
}

// routing is what the route table needs of the Client.
func (c *Client) routing() route.Config {
	return route.Config{
		Addrs: c.cfg.Addrs, ClusterID: c.cfg.ClusterID, Zone: c.cfg.Zone, Indirect: c.cfg.Indirect,
		Timeout: c.cfg.Timeout, AttemptTimeout: c.cfg.AttemptTimeout, Logger: c.cfg.Logger,
		Context: c.ctx, Go: c.tasks.Go, Dial: c.connect, Watch: func(of *route.Set) route.Care { return newCare(c, of) },
	}
}

// begin is what a call begins with: its deadline, and the view.
func (c *Client) begin(ctx context.Context) (context.Context, context.CancelFunc, *route.View, error) {
	ctx, cancel := c.cfg.within(ctx)
	v, err := (*route.View)(nil), ctx.Err()
	if err == nil {
		v, err = c.table.Current(ctx)
	}
	return ctx, cancel, v, err
}

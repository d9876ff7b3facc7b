package client

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/client/fallback"
	"github.com/seqsvr/seqsvr/seq"
)

// Key names one sequence.
type Key struct {
	Space string // "" is seq.DefaultSpace
	UID   seq.UID
}

// StringKey is the key of a name, by seq.HashKey.
func StringKey(space, key string) Key { return Key{Space: space, UID: seq.HashKey(key)} }

// String gives space and UID as "user/42".
func (k Key) String() string {
	space := k.Space
	if space == "" {
		space = seq.DefaultSpace
	}
	return space + "/" + strconv.FormatUint(uint64(k.UID), 10)
}

// Range is the numbers First to Last, inclusive and contiguous, taken for one key.
// With Err it is empty: First and Last are 0.
type Range struct {
	First, Last seq.Seq
	Unordered   bool // unique, but perhaps not the largest so far; needs Config.AllowUnordered
	Err         error
}

// Client talks to one cluster. It is safe for concurrent use; make one and share it.
type Client struct {
	cfg      Config
	servers  servers
	table    table
	outage   *outage
	ids      idQueues
	fallback *fallback.Fallback // nil: none
	turn     atomic.Uint32      // where the next round that asks all in turn begins
	counts   counts

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
	c := &Client{cfg: cfg, outage: newOutage()}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.table.open(c)
	c.ids.open(c)
	if err := c.servers.open(c); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("new client: %w", err)
	}
	c.tasks.Go(c.table.refreshLoop)
	c.tasks.Go(c.servers.sweepLoop)
	c.tasks.Go(func() { c.outage.watch(c) })
	if cfg.Fallback != nil {
		c.fallback = fallback.New(*cfg.Fallback, cfg.Agent, lender{c}, cfg.Logger)
		c.tasks.Go(func() { c.fallback.Keep(c.ctx) })
	}
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
func (c *Client) Ready(ctx context.Context) error { return c.table.await(ctx, nil) }

// Reach is Ready for callers that wait as a call does: it also ends with
// seq.ErrNoQuorum once all Addrs that answer say that they have no quorum of stores.
func (c *Client) Reach(ctx context.Context) error {
	_, err := c.table.current(ctx)
	return err
}

// Close ends all calls in flight with ErrClosed and waits for the Client's own
// goroutines. Calls after it fail with ErrClosed. It is safe to call twice.
func (c *Client) Close() error {
	c.cancel()
	c.ids.close()
	c.servers.close()
	c.tasks.Wait()
	return nil
}

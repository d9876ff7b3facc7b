package client

import (
	"context"
	"fmt"

	"github.com/seqsvr/seqsvr/internal/sdk/call"
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
	calls     *call.Caller
	ids       idQueues
	fallbacks fallbacks
	lent      lent
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
	c.ids.open(c)
	if c.calls, err = call.New(cfg.calls()); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("new client: %w", err)
	}
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
func (c *Client) Ready(ctx context.Context) error { return c.calls.Table().Await(ctx, nil) }

// Close ends all calls in flight with ErrClosed and waits for the Client's own
// goroutines. Before that it gives back the worker ids that it was lent, which takes a
// second at most. Calls after it fail with ErrClosed. It is safe to call twice.
func (c *Client) Close() error {
	c.lent.close(c)
	c.ids.close()
	c.calls.Close()
	return nil
}

// Caller returns the calls that the router and seqctl make beyond the Client. Only this module can import
// its package, and its methods may change in any release.
func (c *Client) Caller() *call.Caller { return c.calls }

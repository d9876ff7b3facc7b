package ctl

import (
	"context"
	"time"

	"github.com/seqsvr/seqsvr/client"
)

// AttemptTimeout is the time after which a silent AllocSvr is given up. It is longer than the SDK's
// default. On a slow machine an answer may be late, and a retry would skip the numbers of the first try.
const AttemptTimeout = 2 * time.Second

// Connect returns a client of the cluster at --addr, with cfg except for its addresses. First it asks the
// addresses itself, so that a wrong address fails at once and not after all retries. Only this search ends
// with ctx. The caller closes the client.
func (o *Options) Connect(ctx context.Context, cfg client.Config) (*client.Client, error) {
	if _, err := o.routes(ctx); err != nil {
		return nil, err
	}
	cfg.Addrs = o.Addrs
	cfg.DialOptions = append(o.Dial(), cfg.DialOptions...)
	return client.New(ctx, cfg)
}

// withClient calls do with a client of the cluster at --addr.
func withClient(ctx context.Context, o *Options, do func(c *client.Client) error) error {
	c, err := o.Connect(ctx, client.Config{AttemptTimeout: AttemptTimeout, AllowUnordered: true})
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

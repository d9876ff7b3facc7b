package ctl

import (
	"context"
	"time"

	"github.com/seqsvr/seqsvr/client"
)

// AttemptTimeout is after how long a silent AllocSvr is given up. It is longer than the
// SDK's own: a slow machine then makes an answer late, where trying again would skip
// the numbers of the first try.
const AttemptTimeout = 2 * time.Second

// Connect gives a client of the cluster at --addr, with cfg but for its addresses. It
// asks the addresses once by itself first, so that a wrong one is told at once and not
// at the end of all retries. ctx bounds the search alone. The caller closes the client.
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

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

// withClient calls do with a client of the cluster at addr. It asks addr once by
// itself first, so that a wrong address is told at once and not at the end of all
// retries.
func withClient(ctx context.Context, addr string, do func(c *client.Client) error) error {
	if _, err := askRoutes(ctx, addr); err != nil {
		return err
	}
	c, err := client.New(ctx, client.Config{Addrs: []string{addr}, AttemptTimeout: AttemptTimeout, AllowUnordered: true})
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

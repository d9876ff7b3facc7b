package ctl

import (
	"context"

	"github.com/seqsvr/seqsvr/client"
)

// withClient calls do with a client of the cluster at addr. It asks addr once by
// itself first, so that a wrong address is told at once and not at the end of all
// retries.
func withClient(ctx context.Context, addr string, do func(c *client.Client) error) error {
	if _, err := askRoutes(ctx, addr); err != nil {
		return err
	}
	c, err := client.New(ctx, client.Config{Addrs: []string{addr}, AllowUnordered: true})
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

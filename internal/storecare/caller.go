package storecare

import (
	"context"
	"errors"
	"fmt"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Caller is the principal that the first store that answers takes this operator for.
func (c *Care) Caller(ctx context.Context) (string, error) {
	var errs []error
	for _, m := range c.list.Members {
		client, err := c.client(m)
		if err == nil {
			within, cancel := context.WithTimeout(ctx, askTime)
			reply, asked := client.DescribeAll(within)
			cancel()
			if asked == nil {
				return reply.GetCaller(), nil
			}
			err = asked
		}
		errs = append(errs, fmt.Errorf("store %s: %w", m.Name, err))
	}
	return "", errors.Join(errs...)
}

// Documents are those of the cluster, and the session to write them with.
func (c *Care) Documents() (*quorum.Group, seq.Session) { return c.group, c.session }

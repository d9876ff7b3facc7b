package storecare

import (
	"context"

	"github.com/seqsvr/seqsvr/quorum"
)

// spread is quorum.ErrZones if a zone has W of the voters that are to be, as far as they answer:
// of one that does not, no zone is known.
func (c *Care) spread(ctx context.Context, voters []quorum.Member, w int) error {
	if c.AnyZones {
		return nil
	}
	zones := make([]string, len(voters))
	for i, m := range voters {
		client, err := c.client(m)
		if err != nil {
			return err
		}
		within, cancel := context.WithTimeout(ctx, askTime)
		if id, err := client.Describe(within); err == nil {
			zones[i] = id.Zone
		}
		cancel()
	}
	return quorum.CheckZones(zones, w)
}

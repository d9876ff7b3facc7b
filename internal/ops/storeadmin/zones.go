package storeadmin

import (
	"context"
	"sync"

	"github.com/seqsvr/seqsvr/quorum"
)

// apart is quorum.ErrZones if a zone would have w of the voters that are to be.
func (c *Care) apart(voters []quorum.Member, w int) error {
	if c.AnyZones {
		return nil
	}
	return quorum.CheckZones(zonesOf(c.list.Voters()), zonesOf(voters), w)
}

// locate asks the members in what zones they are now. One that does not answer is where the list
// has it.
func (c *Care) locate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	for i, m := range c.list.Members {
		client, err := c.client(m)
		if err != nil {
			return err
		}
		wg.Go(func() {
			if id, err := client.Describe(ctx); err == nil {
				c.list.Members[i].Zone = id.Zone
			}
		})
	}
	return nil
}

func zonesOf(members []quorum.Member) []string {
	zones := make([]string, len(members))
	for i, m := range members {
		zones[i] = m.Zone
	}
	return zones
}

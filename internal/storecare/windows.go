package storecare

import (
	"context"
	"errors"
	"fmt"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// WindowsOver tells every store of the list, one after the other, that no process from
// before the restore holds a snowflake worker id or a window of one; tell gets what each
// says. Worker ids are kept back until the highest floor of any W stores, so after an
// error, which names the stores that did not hear it, it is worth repeating.
func (c *Care) WindowsOver(ctx context.Context, reason string, tell func(*pb.DescribeReply)) error {
	var errs []error
	for _, m := range c.list.Members {
		client, err := c.client(m)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		within, cancel := context.WithTimeout(ctx, askTime)
		reply, err := client.WindowsOver(within, c.cluster, c.era, reason)
		cancel()
		if err != nil {
			errs = append(errs, fmt.Errorf("store %s: %w", m.Name, err))
			continue
		}
		tell(reply)
	}
	return errors.Join(errs...)
}

package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Probe asks all AllocSvr of the route table and of Config.Addrs at once for their
// table's version, and returns nil with the first answer. Otherwise an error with what
// became of each question; ctx or Config.Timeout bounds the wait. It takes no number,
// and nothing that it finds changes where calls go.
func (c *Client) Probe(ctx context.Context) error {
	v := c.table.view.Load()
	asked := map[*server]bool{}
	for _, s := range slices.Concat(c.servers.allocs(), c.servers.seeds) {
		asked[s] = true
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan error, len(asked))
	var asking sync.WaitGroup
	defer asking.Wait() // after cancel, so at once
	defer cancel()
	for s := range asked {
		asking.Go(func() {
			answers <- s.try(ctx, c.cfg.Timeout, func(ctx context.Context) error {
				_, err := s.rpc.Routes(ctx, &pb.RoutesRequest{RouteVersion: v.version()})
				return err
			})
		})
	}
	var errs []error
	for range asked {
		err := <-answers
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("none of %d AllocSvr answers: %w", len(asked), errors.Join(errs...))
}

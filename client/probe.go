package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Probe asks all AllocSvr of the route table and of Config.Addrs at once for their
// table's version, and returns nil with the first answer. Otherwise an error with what
// became of each question; ctx bounds the wait. It takes no number and changes nothing
// that the Client thinks of anybody.
func (c *Client) Probe(ctx context.Context) error {
	v := c.view.Load()
	asked := map[*peer]bool{}
	for _, p := range c.seeds {
		asked[p] = true
	}
	if v != nil {
		for _, p := range v.nodes {
			if p != nil {
				asked[p] = true
			}
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan error, len(asked))
	var asking sync.WaitGroup
	defer asking.Wait() // after cancel, so at once
	defer cancel()
	for p := range asked {
		asking.Go(func() {
			_, err := p.rpc.Routes(ctx, &pb.RoutesRequest{RouteVersion: v.version()})
			if err != nil {
				err = callError(ctx, p.addr, err)
			}
			answers <- err
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

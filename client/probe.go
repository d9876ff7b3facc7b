package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Probe asks all AllocSvr of the route table and of Config.Addrs at once for their
// table's version, and returns nil with the first answer of the life of the cluster that the Client
// holds to, or of a later era. Otherwise an error with what
// became of each question; ctx or Config.Timeout bounds the wait. It takes no number,
// and nothing that it finds changes where calls go.
//
// Of several Sets it asks each, waits for an answer of each, and returns nil if there was one.
// Those that gave none show it in Sets a while later, also if no call meets it.
func (c *Client) Probe(ctx context.Context) error {
	v := c.table.view.Load()
	if v == nil || v.alone() {
		return c.probe(ctx, distinct(c.table.first().allocs(), c.servers.seeds))
	}
	errs := make([]error, len(v.parts))
	var asking sync.WaitGroup
	for i, p := range v.parts {
		asking.Go(func() {
			if errs[i] = c.probe(ctx, p.of.allocs()); errs[i] != nil {
				p.of.outage.suspect()
				errs[i] = p.of.named(errs[i])
			}
		})
	}
	asking.Wait()
	for _, err := range errs {
		if err == nil {
			return nil
		}
	}
	return errors.Join(errs...)
}

func (c *Client) probe(ctx context.Context, all []*server) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan error, len(all))
	var asking sync.WaitGroup
	defer asking.Wait() // after cancel, so at once
	defer cancel()
	for _, s := range all {
		asking.Go(func() {
			answers <- s.try(ctx, c.cfg.Timeout, func(ctx context.Context) error {
				reply, err := s.rpc.Routes(ctx, &pb.RoutesRequest{RouteVersion: s.Version()})
				if of := s.set(); err == nil && of != nil && of.id() == reply.GetClusterId() {
					err = of.refuses(s, rpc.IncarnationFromProto(reply.GetIncarnation()))
				}
				return err
			})
		})
	}
	var errs []error
	for range all {
		err := <-answers
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("none of %d AllocSvr answers: %w", len(all), errors.Join(errs...))
}

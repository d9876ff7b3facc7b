package call

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seqsvr/seqsvr/internal/sdk/route"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
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
func (c *Caller) Probe(ctx context.Context) error {
	v := c.table.View()
	if v == nil || v.Alone() {
		return c.probe(ctx, route.Distinct(c.table.First().Allocs(), c.table.Seeds()))
	}
	errs := make([]error, len(v.Parts))
	var asking sync.WaitGroup
	for i, p := range v.Parts {
		asking.Go(func() {
			if errs[i] = c.probe(ctx, p.Of.Allocs()); errs[i] != nil {
				careOf(p.Of).suspect()
				errs[i] = p.Of.Named(errs[i])
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

func (c *Caller) probe(ctx context.Context, all []*route.Server) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan error, len(all))
	var asking sync.WaitGroup
	defer asking.Wait() // after cancel, so at once
	defer cancel()
	for _, s := range all {
		asking.Go(func() {
			reply, err := s.Peer.Routes(ctx, c.cfg.Timeout, &pb.RoutesRequest{RouteVersion: s.Version()})
			if of := s.Set(); err == nil && of != nil && of.ID() == reply.GetClusterId() {
				err = of.Refuses(s, rpc.IncarnationFromProto(reply.GetIncarnation()))
			}
			answers <- err
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

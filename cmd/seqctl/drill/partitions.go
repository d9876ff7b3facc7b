package drill

import (
	"context"
	"fmt"

	"github.com/seqsvr/seqsvr/internal/localcluster"
	"github.com/seqsvr/seqsvr/internal/netlab"
)

func partitionAlloc(ctx context.Context, s *scene) error {
	name, err := s.alloc(ctx)
	if err != nil {
		return err
	}
	return s.cutAlloc(ctx, name, netlab.CutBoth)
}

// cutAlloc cuts an AllocSvr off and mends the network again.
func (s *scene) cutAlloc(ctx context.Context, name string, how netlab.Cut) error {
	err := s.hurtAlloc(ctx, name, string(how), func() error { return s.network.Cut(ctx, name, how) })
	if err != nil {
		return err
	}
	if err := s.rest(ctx, s.outage(3)); err != nil {
		return err
	}
	if err := s.mendNetwork(ctx, name); err != nil {
		return err
	}
	return s.served(ctx)
}

func (s *scene) mendNetwork(ctx context.Context, name string) error {
	if err := s.network.Mend(ctx, name); err != nil {
		return fmt.Errorf("mend the network of %s: %w", name, err)
	}
	s.timeline.now(eventMend, name, "network mended")
	return nil
}

func partitionStore(ctx context.Context, s *scene) error {
	name, err := s.choose(localcluster.RoleStore, s.first(localcluster.RoleStore))
	if err != nil {
		return err
	}
	err = s.hurt(name, string(netlab.CutBoth), everybody, func() error { return s.network.Cut(ctx, name, netlab.CutBoth) })
	if err != nil {
		return err
	}
	if err := s.rest(ctx, s.outage(3)); err != nil {
		return err
	}
	if err := s.mendNetwork(ctx, name); err != nil {
		return err
	}
	if err := s.calm(ctx, name); err != nil {
		return err
	}
	return s.served(ctx)
}

// oneWay takes another AllocSvr for the second cut: the first one has nothing to lose
// any more.
func oneWay(ctx context.Context, s *scene) error {
	for _, how := range []netlab.Cut{netlab.CutIn, netlab.CutOut} {
		name, err := s.alloc(ctx)
		if err != nil {
			return err
		}
		if err := s.cutAlloc(ctx, name, how); err != nil {
			return err
		}
		if err := s.rest(ctx, s.lease); err != nil {
			return err
		}
	}
	return nil
}

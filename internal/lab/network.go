package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/netlab"
)

// outage returns how long nodes are cut off.
func (s *Scene) outage() time.Duration {
	switch {
	case s.drill == nil:
		return s.Outage()
	case s.drill.Pause > 0:
		return s.drill.Pause
	}
	return 3 * s.Lease
}

// packets breaks the network of the victims for a while.
func (s *Scene) packets(ctx context.Context, victims []string, what string, do func(ctx context.Context, name string) error) error {
	whole := context.WithoutCancel(ctx) // nothing is left half done
	err := s.Break(ctx, victims, what, func(name string) error { return do(whole, name) })
	s.Rest(ctx, s.outage())
	return errors.Join(err, s.Mend(victims, "network mended", func(name string) error { return s.Network.Mend(whole, name) }))
}

// cut cuts nodes off. For the second cut it takes other ones: the first have nothing to
// lose any more.
func cut(whom choice, hows ...netlab.Cut) func(context.Context, *Scene) error {
	return func(ctx context.Context, s *Scene) error {
		for i, how := range hows {
			if i > 0 {
				s.Rest(ctx, s.Lease)
			}
			victims, err := whom(ctx, s)
			if err != nil {
				return err
			}
			err = s.packets(ctx, victims, string(how), func(ctx context.Context, name string) error { return s.Network.Cut(ctx, name, how) })
			for _, name := range victims {
				if n := s.find(name); n.Role == store && err == nil {
					err = s.calm(ctx, n)
				}
			}
			if err = errors.Join(err, s.served(ctx)); err != nil {
				return err
			}
		}
		return nil
	}
}

// refuse answers every packet with a refusal.
func refuse(ctx context.Context, s *Scene) error {
	victims, err := s.Victims(ctx, 1, store, alloc, router)
	if err != nil {
		return err
	}
	return s.packets(ctx, victims, "packets are refused", s.Network.Reject)
}

func lose(ctx context.Context, s *Scene) error {
	percent := 5 + s.Random.IntN(45)
	victims, err := s.Victims(ctx, 1+s.Random.IntN(3), store, alloc, router)
	if err != nil {
		return err
	}
	return s.packets(ctx, victims, fmt.Sprintf("loses %d %% of all packets", percent),
		func(ctx context.Context, name string) error { return s.Network.Lose(ctx, name, percent) })
}

// part lets two allocators reach every node but each other.
func part(ctx context.Context, s *Scene) error {
	both, err := s.Victims(ctx, 2, alloc)
	if err != nil || len(both) < 2 {
		return err
	}
	return s.packets(ctx, both[:1], "does not reach "+both[1], func(ctx context.Context, name string) error { return s.Network.Part(ctx, name, both[1]) })
}

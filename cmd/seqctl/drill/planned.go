package drill

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/localcluster"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// stopPatience bounds how long a node may take to leave.
const stopPatience = 30 * time.Second

func restartAlloc(ctx context.Context, s *scene) error {
	name, err := s.alloc(ctx)
	if err != nil {
		return err
	}
	return s.restartOne(ctx, name)
}

// restartOne stops an AllocSvr in order, starts it and waits until it serves again.
func (s *scene) restartOne(ctx context.Context, name string) error {
	p := s.process(name)
	err := s.hurtAlloc(ctx, name, "SIGTERM", func() error {
		stop, cancel := context.WithTimeout(ctx, stopPatience)
		defer cancel()
		return p.Stop(stop)
	})
	if err != nil {
		return err
	}
	s.timeline.now(eventMember, name, "has left")
	if err := s.start(name); err != nil {
		return err
	}
	if err := s.served(ctx); err != nil {
		return err
	}
	s.timeline.now(eventServing, name, "ready again")
	return nil
}

func drainAlloc(ctx context.Context, s *scene) error {
	name, err := s.alloc(ctx)
	if err != nil {
		return err
	}
	err = s.hurtAlloc(ctx, name, "drain", func() error {
		s.undrain = name
		return s.askDrain(ctx, name, false)
	})
	if err != nil {
		return err
	}
	if err := s.emptied(ctx, name); err != nil {
		return err
	}
	if err := s.rest(ctx, s.lease); err != nil {
		return err
	}
	err = s.hurt(name, "undrain", nobody, func() error { return s.askDrain(ctx, name, true) })
	if err != nil {
		return err
	}
	s.undrain = ""
	return s.served(ctx)
}

// askDrain asks another node than the one that it is about.
func (s *scene) askDrain(ctx context.Context, name string, undo bool) error {
	for _, n := range s.role(localcluster.RoleAlloc) {
		if n.Name == name {
			continue
		}
		call, cancel := context.WithTimeout(ctx, stopPatience)
		defer cancel()
		_, err := pb.NewAdminClient(s.survey.conns[n.Name]).Drain(call, &pb.DrainRequest{Node: name, Undo: undo})
		return err
	}
	return fmt.Errorf("%w: nobody but %s", ErrTooSmall, name)
}

// emptied waits until a drained node owns nothing any more.
func (s *scene) emptied(ctx context.Context, name string) error {
	wait, cancel := context.WithTimeout(ctx, recoverPatience)
	defer cancel()
	for {
		r, err := s.survey.status(wait, name)
		if err == nil && r.GetSectionsOwned() == 0 {
			s.timeline.now(eventServing, name, "owns nothing any more")
			return nil
		}
		if wait.Err() != nil {
			return fmt.Errorf("%w: %s still owns %d sections: %w", ErrNotRecovered, name, r.GetSectionsOwned(), err)
		}
		if err := s.rest(wait, surveyEvery); ctx.Err() != nil {
			return err
		}
	}
}

// rollingRestart goes on to the next node only when the one before serves again: two
// stores in their grace at one time would leave no quorum for a new owner.
func rollingRestart(ctx context.Context, s *scene) error {
	for _, n := range s.role(localcluster.RoleStore) {
		err := s.hurt(n.Name, "SIGTERM", nobody, func() error { return s.process(n.Name).Stop(ctx) })
		if err != nil {
			return err
		}
		if err := s.startStore(ctx, n.Name); err != nil {
			return err
		}
	}
	for _, n := range s.role(localcluster.RoleAlloc) {
		if err := s.restartOne(ctx, n.Name); err != nil {
			return err
		}
	}
	for _, n := range s.role(localcluster.RoleRouter) {
		err := s.hurt(n.Name, "SIGTERM", nobody, func() error { return s.process(n.Name).Stop(ctx) })
		if err != nil {
			return err
		}
		if err := s.start(n.Name); err != nil {
			return err
		}
		if err := localcluster.WaitNode(ctx, n, nil, nil); err != nil {
			return err
		}
		s.timeline.now(eventServing, n.Name, "answers again")
	}
	return s.served(ctx)
}

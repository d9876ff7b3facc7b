package drill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/localcluster"
	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// everybody: a fault that may touch every UID.
func everybody(seq.UID) bool { return true }

// nobody: a fault that no UID in particular waits for.
var nobody func(seq.UID) bool

func killAlloc(ctx context.Context, s *scene) error {
	name, err := s.alloc(ctx)
	if err != nil {
		return err
	}
	p := s.process(name)
	if err := s.hurtAlloc(ctx, name, "SIGKILL", p.Kill); err != nil {
		return err
	}
	s.mends = append(s.mends, name)
	if err := s.rest(ctx, s.lease+s.lease/2); err != nil {
		return err
	}
	return s.served(ctx, name)
}

func pauseAlloc(ctx context.Context, s *scene) error {
	name, err := s.alloc(ctx)
	if err != nil {
		return err
	}
	pauses := []time.Duration{s.lease / 2, 2 * s.lease}
	if s.pause > 0 {
		pauses = []time.Duration{s.pause}
	}
	for i, pause := range pauses {
		if i > 0 {
			if err := s.rest(ctx, s.lease); err != nil {
				return err
			}
		}
		if err := s.pauseOnce(ctx, name, pause); err != nil {
			return err
		}
	}
	return nil
}

func (s *scene) pauseOnce(ctx context.Context, name string, pause time.Duration) error {
	p := s.process(name)
	if err := s.hurtAlloc(ctx, name, fmt.Sprintf("SIGSTOP for %v, lease %v", pause, s.lease), p.Pause); err != nil {
		return err
	}
	rested := s.rest(ctx, pause)
	if err := p.Resume(); err != nil { // also when told to end: nothing is left stopped
		return fmt.Errorf("SIGCONT %s: %w", name, err)
	}
	s.timeline.now(eventMend, name, "SIGCONT")
	if rested != nil {
		return rested
	}
	return s.served(ctx)
}

func killStore(ctx context.Context, s *scene) error {
	name, err := s.choose(localcluster.RoleStore, s.first(localcluster.RoleStore))
	if err != nil {
		return err
	}
	p := s.process(name)
	if err := s.hurt(name, "SIGKILL", everybody, p.Kill); err != nil {
		return err
	}
	s.mends = append(s.mends, name)
	if err := s.rest(ctx, 2*s.lease); err != nil {
		return err
	}
	return s.startStore(ctx, name)
}

// startStore starts a store again and waits until its grace is over.
func (s *scene) startStore(ctx context.Context, name string) error {
	if err := s.start(name); err != nil {
		return err
	}
	if err := s.calm(ctx, name); err != nil {
		return err
	}
	s.timeline.now(eventMend, name, "votes, its grace is over")
	return nil
}

func killTwoStores(ctx context.Context, s *scene) error {
	stores := s.role(localcluster.RoleStore)
	kill := (len(stores) + 1) / 2 // what is left is no quorum
	for _, n := range stores[:kill] {
		if err := s.hurt(n.Name, "SIGKILL", everybody, s.process(n.Name).Kill); err != nil {
			return err
		}
		s.mends = append(s.mends, n.Name)
	}
	if err := s.refused(ctx); err != nil {
		return err
	}
	if err := s.rest(ctx, s.lease); err != nil {
		return err
	}
	for i, n := range stores[:kill] {
		if err := s.start(n.Name); err != nil {
			return err
		}
		if i == 0 {
			if err := s.served(ctx); err != nil {
				return err
			}
			s.timeline.now(eventServing, "", "since %s is back", n.Name)
		}
	}
	for _, n := range stores[:kill] {
		if err := s.calm(ctx, n.Name); err != nil {
			return err
		}
	}
	return s.served(ctx)
}

// refused asks an AllocSvr itself, without the SDK's patience, until it says that it
// may not answer any more.
func (s *scene) refused(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, 3*s.lease+5*time.Second)
	defer cancel()
	t, mapping, err := s.survey.routes(wait)
	if err != nil {
		return err
	}
	space, err := mapping.Space("")
	if err != nil {
		return err
	}
	node := s.busiest(t)()
	var uid seq.UID
	for ; uid < 1<<24; uid += 1 << seq.BlockBits {
		if owner, ok := t.Owner(space.SectionOf(uid)); ok && owner.Name == node {
			break
		}
	}
	ask := pb.NewSequenceClient(s.survey.conns[node])
	for {
		reply, err := ask.Current(wait, &pb.CurrentRequest{Batches: []*pb.Batch{{Uids: []uint64{uint64(uid)}}}})
		for _, r := range reply.GetResults() {
			for _, failed := range r.GetErrors() {
				err = rpc.FromKeyError(failed)
			}
		}
		if errors.Is(err, seq.ErrNoQuorum) || errors.Is(err, seq.ErrNoLease) {
			s.timeline.now(eventRefused, node, "%v: %v", status.Code(rpc.ToStatus(err)), err)
			return nil
		}
		if err := s.rest(wait, 5*time.Millisecond); err != nil {
			return fmt.Errorf("%w: %s still answers without a quorum", ErrBroken, node)
		}
	}
}

func killRouter(ctx context.Context, s *scene) error {
	name, err := s.choose(localcluster.RoleRouter, s.first(localcluster.RoleRouter))
	if err != nil {
		return err
	}
	p := s.process(name)
	if err := s.hurt(name, "SIGKILL", everybody, p.Kill); err != nil {
		return err
	}
	s.mends = append(s.mends, name)
	if err := s.rest(ctx, 2*time.Second); err != nil {
		return err
	}
	if err := s.start(name); err != nil {
		return err
	}
	return s.served(ctx)
}

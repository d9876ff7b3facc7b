package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// until asks again and again until there is no error, for as long as the cluster's
// patience; then it is ErrNotRecovered.
func (s *Scene) until(ctx context.Context, pause time.Duration, ask func(context.Context) error) error {
	wait, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	for {
		err := ask(wait)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return s.ended(ctx)
		case wait.Err() != nil:
			return fmt.Errorf("%w: %w", ErrNotRecovered, err)
		}
		_ = rest(wait, pause)
	}
}

// ended is the error of a run that is told to end: none in a drawn scene.
func (s *Scene) ended(ctx context.Context) error {
	if s.drill == nil {
		return nil
	}
	return ctx.Err()
}

// ready waits until a node that was restarted does all that it did before, so that the next node may be
// restarted. Two stores in their grace at one time would leave no quorum for a new owner. In a drawn scene
// ready waits for everything that runs, and not for a grace.
func (s *Scene) ready(ctx context.Context, name string) error {
	n := s.find(name)
	if s.drill == nil {
		if err := s.Recovered(ctx); ctx.Err() == nil {
			return err
		}
		return s.ended(ctx)
	}
	var err error
	switch n.Role {
	case store:
		if err = s.calm(ctx, n); err == nil {
			s.timeline.now(eventMend, name, "votes again")
		}
	case alloc:
		if err = s.served(ctx); err == nil {
			s.timeline.now(eventServing, name, "ready again")
		}
	default:
		if err = localcluster.WaitNode(ctx, n, nil, nil); err == nil {
			s.timeline.now(eventServing, name, "answers again")
		}
	}
	return err
}

// served waits in a drill until AllocSvr other than away are ready and every section has
// an owner.
func (s *Scene) served(ctx context.Context, away ...string) error {
	if s.drill == nil {
		return nil
	}
	return s.until(ctx, surveyEvery, func(ctx context.Context) error {
		asked := false // which sections have owners, which is the same at each
		for _, n := range s.Role(alloc) {
			if slices.Contains(away, n.Name) {
				continue
			}
			r, err := s.drill.survey.status(ctx, n.Name, asked)
			asked = true
			switch {
			case err != nil:
				return fmt.Errorf("%s: %w", n.Name, err)
			case !r.GetReady():
				return fmt.Errorf("%s is not ready: %s", n.Name, r.GetReason())
			case r.GetSectionsUnowned() > 0:
				return fmt.Errorf("%d of %d sections have no owner", r.GetSectionsUnowned(), r.GetSections())
			}
		}
		return nil
	})
}

// errGrace is a store that does not vote, or whose grace is not over.
var errGrace = errors.New("in its grace")

// calm waits in a drill until a store votes and its grace is over; or until all members of etcd
// that run know their leader.
func (s *Scene) calm(ctx context.Context, n localcluster.Node) error {
	if s.drill == nil {
		return nil
	}
	if s.OnEtcd() {
		_, err := leading(ctx, s)
		return err
	}
	conn, err := rpc.Dial(n.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	return s.until(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		reply, err := pb.NewStoreClient(conn).Describe(ctx, &pb.DescribeRequest{})
		if err == nil && (!reply.GetVoting() || reply.GetGraceRemainingUs() > 0) {
			err = fmt.Errorf("%w: %s, for %d µs", errGrace, reply.GetState(), reply.GetGraceRemainingUs())
		}
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		return nil
	})
}

// errOwns is a drained node that still owns sections.
var errOwns = errors.New("still owns sections")

// emptied waits in a drill until a drained node owns nothing any more.
func (s *Scene) emptied(ctx context.Context, name string) error {
	if s.drill == nil {
		return nil
	}
	err := s.until(ctx, surveyEvery, func(ctx context.Context) error {
		r, err := s.drill.survey.status(ctx, name, true)
		if err == nil && r.GetSectionsOwned() > 0 {
			err = fmt.Errorf("%w: %s, %d", errOwns, name, r.GetSectionsOwned())
		}
		return err
	})
	if err == nil {
		s.timeline.now(eventServing, name, "owns nothing any more")
	}
	return err
}

// refused asks an AllocSvr itself in a drill, without the SDK's patience, until it says
// that it may not answer any more.
func (s *Scene) refused(ctx context.Context) error {
	if s.drill == nil {
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, 3*s.Lease+5*time.Second)
	defer cancel()
	t, space, err := s.drill.survey.table(wait)
	if err != nil {
		return err
	}
	node := s.drill.busiest(t)[0]
	var uid seq.UID
	for ; uid < 1<<24; uid += 1 << seq.BlockBits {
		if owner, ok := t.Owner(space.SectionOf(uid)); ok && owner.Name == node {
			break
		}
	}
	ask := pb.NewSequenceClient(s.drill.survey.conns[node])
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
		if err := rest(wait, 5*time.Millisecond); err != nil {
			return fmt.Errorf("%w: %s still answers without a quorum", ErrBroken, node)
		}
	}
}

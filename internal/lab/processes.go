package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// away returns how long killed nodes stay dead.
func (s *Scene) away(usual time.Duration) time.Duration {
	if s.drill == nil {
		return s.Between(0, 3*time.Second)
	}
	return usual
}

// choice is whom a scenario breaks.
type choice func(ctx context.Context, s *Scene) ([]string, error)

// of chooses so many of the roles.
func of(count int, roles ...localcluster.Role) choice {
	return func(ctx context.Context, s *Scene) ([]string, error) { return s.Victims(ctx, count, roles...) }
}

// kill is kill -9; after a while the nodes are started again.
func kill(whom choice) func(context.Context, *Scene) error {
	return func(ctx context.Context, s *Scene) error {
		victims, err := whom(ctx, s)
		if err != nil {
			return err
		}
		err = s.Break(ctx, victims, "SIGKILL", s.Kill)
		s.Rest(ctx, s.away(2*s.Lease))
		return errors.Join(err, s.StartAgain(ctx, victims))
	}
}

// killAlloc leaves the node dead in a drill's own cluster: what it was for goes on
// without it.
func killAlloc(ctx context.Context, s *Scene) error {
	victims, err := s.Victims(ctx, 1, alloc)
	if err != nil {
		return err
	}
	err = s.Break(ctx, victims, "SIGKILL", s.Kill)
	s.Rest(ctx, s.away(s.Lease+s.Lease/2))
	err = errors.Join(err, s.served(ctx, victims...))
	if s.drill != nil && s.Own != nil {
		return err
	}
	return errors.Join(err, s.StartAgain(ctx, victims))
}

// killQuorum kills so many stores that those left are no quorum. One of them is enough to
// serve again.
func killQuorum(ctx context.Context, s *Scene) error {
	victims, err := s.Victims(ctx, (len(s.Role(store))+1)/2, store)
	if err != nil {
		return err
	}
	if err = s.Break(ctx, victims, "SIGKILL", s.Kill); err == nil {
		err = s.refused(ctx)
	}
	s.Rest(ctx, s.away(s.Lease))
	for i := range victims {
		err = errors.Join(err, s.Mend(victims[i:i+1], "started", s.start))
		if i == 0 && err == nil {
			err = s.served(ctx)
			s.timeline.now(eventServing, "", "since %s is back", victims[0])
		}
	}
	for _, name := range victims {
		err = errors.Join(err, s.calm(ctx, s.find(name)))
	}
	return errors.Join(err, s.served(ctx))
}

// killStarting kills, starts, and kills again some time into the start.
func killStarting(whom choice) func(context.Context, *Scene) error {
	return func(ctx context.Context, s *Scene) error {
		victims, err := whom(ctx, s)
		for range 2 + s.Random.IntN(3) {
			if err != nil {
				return err
			}
			err = errors.Join(s.Break(ctx, victims, "SIGKILL", s.Kill), s.StartAgain(ctx, victims))
			s.Rest(ctx, s.Between(0, 400*time.Millisecond))
		}
		return err
	}
}

const longestPause = 10 * time.Second

// pauses returns how long nodes are stopped, one time after the other. Drawn pauses are mostly short,
// because pauses around the length of a lease matter most.
func (s *Scene) pauses() []time.Duration {
	switch {
	case s.drill == nil && s.Random.IntN(6) == 0:
		return []time.Duration{s.Between(100*time.Millisecond, longestPause)}
	case s.drill == nil:
		return []time.Duration{s.Between(100*time.Millisecond, min(longestPause, 5*s.Lease/2))}
	case s.drill.Pause > 0:
		return []time.Duration{s.drill.Pause}
	}
	return []time.Duration{s.Lease / 2, 2 * s.Lease}
}

// pause is SIGSTOP, and SIGCONT.
func pause(whom choice) func(context.Context, *Scene) error {
	return func(ctx context.Context, s *Scene) error {
		for i, wait := range s.pauses() {
			if i > 0 {
				s.Rest(ctx, s.Lease)
			}
			victims, err := whom(ctx, s)
			if err != nil {
				return err
			}
			err = s.Break(ctx, victims, fmt.Sprintf("SIGSTOP for %v, lease %v", wait, s.Lease),
				func(name string) error { return s.processes[name].Pause() })
			s.Rest(ctx, wait)
			resumed := s.Mend(victims, "SIGCONT", func(name string) error { return s.processes[name].Resume() })
			if err = errors.Join(err, resumed, s.served(ctx)); err != nil {
				return err
			}
		}
		return nil
	}
}

// restart is SIGTERM, and a start at once.
func restart(whom choice) func(context.Context, *Scene) error {
	return func(ctx context.Context, s *Scene) error {
		victims, err := whom(ctx, s)
		if err != nil {
			return err
		}
		err = s.Break(ctx, victims, "SIGTERM", func(name string) error { return s.restart(ctx, name) })
		for _, name := range victims {
			if err == nil && s.drill != nil {
				err = s.ready(ctx, name)
			}
		}
		return err
	}
}

// restart stops a node in order, which must leave, and starts it. It is started when the
// run is to end, too.
func (s *Scene) restart(ctx context.Context, name string) error {
	stop, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	err := s.processes[name].Stop(stop)
	switch {
	case err != nil && ctx.Err() != nil:
		err = s.ended(ctx)
	case err != nil:
		err = fmt.Errorf("%w: told to leave: %w", ErrUnexpected, err)
	default:
		s.timeline.now(eventMember, name, "has left")
	}
	return errors.Join(err, s.Mend([]string{name}, "started", s.start))
}

// rolling restarts everything, one node after the other, each when the one before serves
// again.
func rolling(ctx context.Context, s *Scene) error {
	all, err := s.Victims(ctx, len(s.Nodes), store, alloc, router)
	for _, name := range all {
		if err != nil || ctx.Err() != nil {
			break
		}
		one, do := []string{name}, func(name string) error { return s.restart(ctx, name) }
		if s.find(name).Role == alloc {
			err = s.Break(ctx, one, "SIGTERM", do)
		} else {
			err = s.hurt(one, "SIGTERM", nobody, do)
		}
		if err == nil {
			err = s.ready(ctx, name)
		}
	}
	if err != nil {
		return err
	}
	return s.served(ctx)
}

// drain gives what a node has to the others, and takes that back.
func drain(ctx context.Context, s *Scene) error {
	victims, err := s.Victims(ctx, 1, alloc)
	if err != nil || len(victims) == 0 {
		return err
	}
	err = s.Break(ctx, victims, "drain", func(name string) error { return s.askDrain(ctx, name, false) })
	if err == nil {
		err = s.emptied(ctx, victims[0])
	}
	s.Rest(ctx, s.away(s.Lease))
	undone := s.hurt(victims, "undrain", nobody, func(name string) error { return s.askDrain(context.WithoutCancel(ctx), name, true) })
	return errors.Join(err, undone, s.served(ctx))
}

// askDrain asks another node than the one that it is about. A drawn scene comes right
// after others, and asks until the cluster can do it.
func (s *Scene) askDrain(ctx context.Context, name string, undo bool) error {
	others := s.Role(alloc)
	if others[0].Name == name {
		others = others[1:]
	}
	if len(others) == 0 {
		return fmt.Errorf("%w: nobody but %s", ErrTooSmall, name)
	}
	conn, err := rpc.Dial(others[0].Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	ask := func(ctx context.Context) error {
		_, err := pb.NewAdminClient(conn).Drain(ctx, &pb.DrainRequest{Node: name, Undo: undo})
		return err
	}
	if s.drill == nil {
		return s.until(ctx, 10*poll, ask)
	}
	call, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	return ask(call)
}

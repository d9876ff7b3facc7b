package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/localcluster"
)

const (
	store  = localcluster.RoleStore
	alloc  = localcluster.RoleAlloc
	router = localcluster.RoleRouter
)

var processFaults = []Fault{
	{Kind: "kill one store", Run: kill(1, store)},
	{Kind: "kill two stores", Run: kill(2, store)},
	{Kind: "kill all stores", Alone: true, Run: kill(99, store)},
	{Kind: "kill one alloc", Run: kill(1, alloc)},
	{Kind: "kill two allocs", Run: kill(2, alloc)},
	{Kind: "kill all allocs", Alone: true, Run: kill(99, alloc)},
	{Kind: "kill the router", Run: kill(1, router)},
	{Kind: "kill everything", Alone: true, Run: kill(99, store, alloc, router)},
	{Kind: "kill an alloc again while it starts", Run: killTwice(alloc)},
	{Kind: "kill a store again while it starts", Run: killTwice(store)},
	{Kind: "pause one store", Run: pause(1, store)},
	{Kind: "pause two stores", Run: pause(2, store)},
	{Kind: "pause one alloc", Run: pause(1, alloc)},
	{Kind: "pause two allocs", Run: pause(2, alloc)},
	{Kind: "pause everything", Alone: true, Run: pause(99, store, alloc, router)},
	{Kind: "restart one store", Run: restart(1, store)},
	{Kind: "restart one alloc", Run: restart(1, alloc)},
	{Kind: "restart all allocs", Alone: true, Run: restart(99, alloc)},
	{Kind: "rolling restart", Alone: true, Run: rolling},
}

// kill is kill -9; after a while the processes are started again, in random order.
func kill(count int, roles ...localcluster.Role) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		victims := r.take(count, roles...)
		wait := r.between(0, 3*time.Second)
		r.note("kill -9 %v for %v", names(victims), wait)
		err := each(victims, (*localcluster.Process).Kill)
		r.rest(ctx, wait)
		return errors.Join(err, startAgain(victims))
	}
}

func startAgain(victims []*localcluster.Process) error {
	var errs []error
	for _, p := range victims {
		if err := p.Start(); err != nil && !errors.Is(err, localcluster.ErrRunning) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// killTwice kills, starts, and kills again some time into the start.
func killTwice(role localcluster.Role) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		victims := r.take(1, role)
		times := 2 + r.random.IntN(3)
		r.note("kill -9 %v %d times", names(victims), times)
		for range times {
			if err := each(victims, (*localcluster.Process).Kill); err != nil {
				return err
			}
			if err := startAgain(victims); err != nil {
				return err
			}
			r.rest(ctx, r.between(0, 400*time.Millisecond))
		}
		return nil
	}
}

const longestPause = 10 * time.Second

// pause is SIGSTOP from 0.1 to 10 s, more often short: around the length of a lease it
// matters most.
func pause(count int, roles ...localcluster.Role) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		victims := r.take(count, roles...)
		wait := r.between(100*time.Millisecond, min(longestPause, 5*r.cfg.Lease/2))
		if r.random.IntN(6) == 0 {
			wait = r.between(100*time.Millisecond, longestPause)
		}
		r.note("SIGSTOP %v for %v", names(victims), wait)
		err := each(victims, (*localcluster.Process).Pause)
		r.rest(ctx, wait)
		return errors.Join(err, each(victims, (*localcluster.Process).Resume))
	}
}

// restart is SIGTERM, and a start at once. A process that is told to leave must leave.
func restart(count int, roles ...localcluster.Role) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		victims := r.take(count, roles...)
		r.note("SIGTERM %v and start", names(victims))
		return each(victims, func(p *localcluster.Process) error { return r.restartOne(ctx, p) })
	}
}

// restartOne ends with ctx; the process is killed then.
func (r *round) restartOne(ctx context.Context, p *localcluster.Process) error {
	stop, cancel := context.WithTimeout(ctx, r.cfg.Patience)
	defer cancel()
	err := p.Stop(stop)
	if ctx.Err() != nil {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%w: told to leave: %w", ErrUnexpected, err)
	}
	return errors.Join(err, startAgain([]*localcluster.Process{p}))
}

// rolling restarts everything, one process after the other, each when the one before
// serves again.
func rolling(ctx context.Context, r *round) error {
	all := r.take(99, store, alloc, router)
	r.note("SIGTERM and start %v, one after the other", names(all))
	for _, p := range all {
		if ctx.Err() != nil {
			return nil
		}
		if err := r.restartOne(ctx, p); err != nil {
			return err
		}
		if err := r.Recovered(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

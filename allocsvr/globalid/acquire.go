package globalid

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/tenure"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

const (
	// acquireBound ends an acquisition whose stores answer slowly.
	acquireBound = 10 * time.Second
	// acquirePause is how long the reason of a failed acquisition answers all who ask,
	// so that a flood of requests does not become one of reads.
	acquirePause = 200 * time.Millisecond
	// surveys is how often one acquisition looks for free worker ids, when others are
	// faster with those that it found.
	surveys = 3
)

// leaseOf gives the issuer's lease, or has one acquired and waits for it, as long as
// ctx lasts.
func (s *Service) leaseOf(ctx context.Context, i *issuer) (*lease, error) {
	for {
		if l := i.current.Load(); l != nil {
			return l, nil
		}
		if err := s.view.Load().spaces[i.name].inUse(); err != nil {
			return nil, err
		}
		if err := s.cfg.Quorum(); err != nil {
			return nil, fmt.Errorf("namespace %q: %w", i.name, err)
		}
		p, err := s.acquireFor(i)
		if err != nil {
			return nil, err
		}
		select {
		case <-p.done:
			if p.err != nil {
				return nil, p.err
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("namespace %q: wait for a worker id: %w", i.name, ctx.Err())
		}
	}
}

// acquireFor begins an acquisition, or joins the one under way, or tells why the last
// one failed.
func (s *Service) acquireFor(i *issuer) (*pending, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.pending != nil {
		return i.pending, nil
	}
	if i.failed != nil && s.cfg.Clock.Now() < i.retryAt {
		return nil, i.failed
	}
	p := &pending{done: make(chan struct{})}
	if !s.spawn(func(ctx context.Context) { s.acquireNow(ctx, i, p) }) {
		return nil, fmt.Errorf("namespace %q: %w", i.name, seq.ErrShuttingDown)
	}
	i.pending = p
	return p, nil
}

// acquireNow is one acquisition, in the background: it outlives the requests that
// wait for it, since the next ones want the same.
func (s *Service) acquireNow(ctx context.Context, i *issuer, p *pending) {
	var err error
	if i.current.Load() == nil { // nobody was faster
		ctx, cancel := context.WithTimeout(ctx, acquireBound)
		err = s.acquire(ctx, i)
		cancel()
	}
	if err != nil && s.isLeaving() {
		err = fmt.Errorf("%w: %w", seq.ErrShuttingDown, err)
	}
	if err != nil {
		err = fmt.Errorf("namespace %q datacenter %d: %w", i.name, s.cfg.DatacenterID, err)
		s.log.Warn("no worker id", "error", err)
	}
	i.mu.Lock()
	i.pending, i.failed, i.retryAt = nil, err, s.cfg.Clock.Now()+acquirePause
	i.mu.Unlock()
	p.err = err
	close(p.done)
}

// acquire gets a worker id. A crash anywhere leaves a promise and at most a window
// above the clock behind, of a worker id that is free once the lease has ended.
func (s *Service) acquire(ctx context.Context, i *issuer) error {
	ns, err := s.record(ctx, i.name)
	if err != nil {
		return err
	}
	dc, err := s.datacenterIn(ns.Layout)
	if err != nil {
		return err
	}
	var last error
	for range surveys {
		try, err := s.candidates(ctx, i, ns, dc)
		if err != nil {
			return err
		}
		for _, w := range try {
			err := s.takeAndOpen(ctx, i, ns, dc, w)
			if err == nil {
				return nil
			}
			if !isTaken(err) {
				return err
			}
			last = err
		}
	}
	return fmt.Errorf("%w: others were faster %d times: %w", seq.ErrOverloaded, surveys, last)
}

// isTaken: somebody else got the worker id meanwhile; another one may be free.
func isTaken(err error) bool {
	return errors.Is(err, quorum.ErrNack) || errors.Is(err, quorum.ErrHeld) || errors.Is(err, errTaken)
}

// takeAndOpen gets one worker id, and puts it to use.
func (s *Service) takeAndOpen(ctx context.Context, i *issuer, ns Namespace, dc snowflake.Datacenter, w snowflake.Worker) error {
	l := &lease{issuer: i, ns: ns, layout: ns.Layout.Name(), datacenter: dc, worker: w, register: seq.WorkerRegister(ns.Name, uint64(dc), uint64(w))}
	hold, err := s.bid(ctx, &bid{s: s, register: l.register,
		suits: func(m mark) bool { return m <= s.latest() },
		begin: func(floor mark) (first mark, err error) {
			now := s.now()
			if l.gen, err = snowflake.New(ns.Layout, dc, w, floor.tick(ns.Layout), s.generatorOptions()...); err != nil {
				return 0, issuing.name(err)
			}
			l.floor = floor.tick(ns.Layout)
			i.prefer(&w)
			return target(now, floor, s.cfg.Window), nil
		},
		confirmed: func(round uint64, first mark) (leased bool) {
			i.prefer(nil)
			l.round = round
			l.confirm(first)
			s.mu.Lock()
			s.held[l.register] = l
			s.mu.Unlock()
			return true
		}})
	if err == nil {
		s.open(l, hold)
	}
	return err
}

// datacenterIn is the node's datacenter in IDs of the layout. Without that field all
// datacenters share one pool of worker ids, that of 0, as their IDs do.
func (s *Service) datacenterIn(l snowflake.Layout) (snowflake.Datacenter, error) {
	now := s.cfg.Wall()
	if _, err := l.TickAt(now); err != nil {
		return 0, issuing.name(err)
	}
	if err := s.cfg.fits(l); err != nil {
		return 0, err
	}
	if !l.HasDatacenter() {
		return 0, nil
	}
	return s.cfg.DatacenterID, nil
}

// candidates looks at the stores for worker ids to try. At least one, or an error.
func (s *Service) candidates(ctx context.Context, i *issuer, ns Namespace, dc snowflake.Datacenter) ([]snowflake.Worker, error) {
	found, err := s.cfg.ReadPrefix(ctx, s.cfg.Holder.Session, prefixIn(ns.Name, dc))
	if err != nil {
		return nil, err
	}
	used := survey(ns.Name, found, s.cfg.Holder.Session, s.latest())
	if err := behind(used, s.now(), s.cfg.Holder.Session); err != nil {
		return nil, err
	}
	if err := kept(floorOf(used), s.latest(), s.now()); err != nil {
		return nil, err
	}
	rnd := s.rand()
	i.mu.Lock()
	c := choose(used, ns.Layout, order{first: i.first}, rnd)
	i.mu.Unlock()
	s.pooled(i, dc, c.pool)
	if s.cfg.Worker != nil {
		c = c.only(*s.cfg.Worker, used)
	}
	if len(c.try) == 0 {
		if err := ahead(used, s.now()); err != nil {
			return nil, err
		}
		return nil, exhausted(used, c.pool, s.nodes())
	}
	return c.try, nil
}

// rand is a source of its own for one attempt.
func (s *Service) rand() *rand.Rand {
	s.mu.Lock()
	defer s.mu.Unlock()
	return rand.New(rand.NewPCG(s.random.Uint64(), 0))
}

func (s *Service) generatorOptions() []snowflake.Option {
	wall := s.cfg.Wall
	return []snowflake.Option{
		snowflake.WithClock(func() int64 { return wall().UnixMilli() }), snowflake.WithSleeper(s.cfg.Sleep),
	}
}

// latest is the latest mark of a worker id that this node takes: with a later one
// nothing could be handed out before the clock gets there.
func (s *Service) latest() mark { return s.now().add(reach * s.cfg.Window) }

// open puts a lease to use that is among the held.
func (s *Service) open(l *lease, hold tenure.Hold) {
	l.attached(hold)
	l.issuer.current.Store(l)
	s.log.Info("worker id acquired", "namespace", l.ns.Name, "datacenter", l.datacenter, "worker", l.worker,
		"round", l.round, "confirmed", l.mark().time())
	s.warnEnd(l.issuer, l.ns)
	s.news.fire()
	s.kick()
}

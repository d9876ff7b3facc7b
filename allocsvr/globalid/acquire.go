package globalid

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

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

// claim keeps a worker id for one attempt of this node, until unclaim; false if there is
// one already, or the node holds it. Two attempts under the one session could otherwise
// get the same epoch, and both of them its window.
func (s *Service) claim(reg seq.Register) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[reg] != nil || s.claimed[reg] {
		return false
	}
	s.claimed[reg] = true
	return true
}

func (s *Service) unclaim(reg seq.Register) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.claimed, reg)
}

// takeAndOpen keeps the claim until the lease is among the held.
func (s *Service) takeAndOpen(ctx context.Context, i *issuer, ns Namespace, dc snowflake.Datacenter, w snowflake.Worker) error {
	reg := seq.WorkerRegister(ns.Name, uint64(dc), uint64(w))
	if err := reg.Validate(); err != nil {
		return err
	}
	if !s.claim(reg) {
		return fmt.Errorf("%s: %w: at this node", reg, errTaken)
	}
	defer s.unclaim(reg)
	l, err := s.take(ctx, i, ns, dc, w, reg)
	if err != nil {
		return err
	}
	s.open(l)
	return nil
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
	found, err := s.cfg.Registers.ReadPrefix(ctx, s.cfg.Session, prefixIn(ns.Name, dc))
	if err != nil {
		return nil, err
	}
	used := survey(ns.Name, found, s.cfg.Session, s.latest())
	if err := behind(used, s.now(), s.cfg.Session); err != nil {
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

// promise gets the promise of a worker id whose mark suits: look, and then PREPARE,
// since one that one store grants and another refuses would depose a live holder. The
// worker id must be claimed. errTaken: its mark does not suit, or no longer.
// seq.ErrWorkersKept: nor would that of any other.
//
// The floor is the highest of W promises: whatever any holder before had confirmed, W
// stores have it, and one of those is among these.
func (s *Service) promise(ctx context.Context, reg seq.Register, suits func(mark) bool) (round uint64, floor mark, err error) {
	unsuited := func(out quorum.Outcome) error {
		if out.Max > out.Floor {
			return fmt.Errorf("%s: %w: its mark is %s", reg, errTaken, mark(out.Max).time())
		}
		return kept(mark(out.Floor), 0, s.now())
	}
	out := s.cfg.Registers.Probe(ctx, s.cfg.Session, []seq.Register{reg})[0]
	if out.State != quorum.Won {
		return 0, 0, out.Err
	}
	if !suits(mark(out.Max)) {
		return 0, 0, unsuited(out)
	}
	round = out.Promised.Round + 1
	out = s.cfg.Registers.Prepare(ctx, s.cfg.Session, []quorum.PrepareItem{{Register: reg, Round: round, Create: true}})[0]
	if out.State != quorum.Won {
		if errors.Is(out.Err, quorum.ErrRefused) { // it was ended: by Leave, or as one taken for dead
			return 0, 0, fmt.Errorf("%w: %w", seq.ErrNoLease, out.Err)
		}
		return 0, 0, out.Err
	}
	if !suits(mark(out.Max)) {
		return 0, 0, unsuited(out)
	}
	return round, mark(out.Max), nil
}

// take tries to get one worker id, which is claimed: promise, first mark.
func (s *Service) take(ctx context.Context, i *issuer, ns Namespace, dc snowflake.Datacenter, w snowflake.Worker, reg seq.Register) (*lease, error) {
	round, floor, err := s.promise(ctx, reg, func(m mark) bool { return m <= s.latest() })
	if err != nil {
		return nil, err
	}
	now := s.now()
	gen, err := snowflake.New(ns.Layout, dc, w, floor.tick(ns.Layout), s.generatorOptions()...)
	if err != nil {
		return nil, issuing.name(err)
	}
	i.mu.Lock()
	i.first = &w
	i.mu.Unlock()
	first := target(now, floor, s.cfg.Window)
	out := s.cfg.Registers.Step(ctx, s.cfg.Session, []quorum.StepItem{{Register: reg, Round: round, Max: uint64(first)}})[0]
	if out.State != quorum.Won {
		return nil, stepError(out.Err)
	}
	i.mu.Lock()
	i.first = nil
	i.mu.Unlock()
	l := &lease{issuer: i, ns: ns, layout: ns.Layout.Name(), datacenter: dc, worker: w,
		register: reg, round: round, floor: floor.tick(ns.Layout), gen: gen}
	l.confirm(first)
	return l, nil
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

// stepError names why a mark was not taken. Stores refuse one that is too far beyond
// their own clocks; nothing else of a worker register can be refused.
func stepError(err error) error {
	if errors.Is(err, quorum.ErrRefused) && !errors.Is(err, quorum.ErrNack) {
		return fmt.Errorf("%w: %w", seq.ErrClockOff, err)
	}
	return err
}

// open puts a lease to use. It is among the held before the stores hear of it, so that
// a loss that they tell of at once finds it.
func (s *Service) open(l *lease) {
	s.mu.Lock()
	s.held[l.register] = l
	s.mu.Unlock()
	l.attached(s.cfg.Leases.Attach(l.register, l.round))
	l.issuer.current.Store(l)
	s.log.Info("worker id acquired", "namespace", l.ns.Name, "datacenter", l.datacenter, "worker", l.worker,
		"round", l.round, "confirmed", l.mark().time())
	s.warnEnd(l.issuer, l.ns)
	s.news.fire()
	s.kick()
}

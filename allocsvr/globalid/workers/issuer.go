package workers

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

const (
	// acquireBound ends an acquisition whose stores answer slowly.
	acquireBound = 10 * time.Second
	// acquirePause is the time during which the error of a failed acquisition answers all calls, so that a
	// flood of requests does not become a flood of reads.
	acquirePause = 200 * time.Millisecond
	// idleAfter is the time after its last request in which a namespace stays ready. Then its window is no
	// longer extended, and the next request waits for one write.
	idleAfter = time.Minute
)

// Issuer is one namespace at this node: at most one lease at a time.
type Issuer struct {
	w       *Workers
	name    string
	current atomic.Pointer[Lease] // nil if there is none
	used    atomic.Int64          // time of the last request, on the clock; zero before the first

	Issued    atomic.Uint64 // IDs handed out since start
	Delegated atomic.Uint64 // windows given to clients since start
	GivenBack atomic.Uint64 // of them, before their time
	shares    shares        // of clients
	loans     loans         // to them

	mu      sync.Mutex // guards all below
	pending *pending   // an acquisition under way
	failed  error      // of the last one, given to all calls before retryAt
	retryAt time.Duration
	first   *snowflake.Worker // of an acquisition that failed after its promise
	pool    Pool              // as last seen; its Size is zero before that
	warned  time.Duration     // when the last warning of the layout's end was logged; zero before the first
}

// pending is an acquisition that several calls may wait for.
type pending struct {
	done chan struct{} // closed once err is set
	err  error
}

// Touch keeps the namespace ready for a minute.
func (i *Issuer) Touch() {
	now := i.w.cfg.Clock.Now()
	// Coarse, so that callers do not fight for the cache line.
	if was := i.used.Load(); was == 0 || now-time.Duration(was) > idleAfter/16 {
		i.used.Store(max(1, int64(now)))
	}
}

// Asked reports whether the namespace was ever requested.
func (i *Issuer) Asked() bool { return i.used.Load() != 0 || i.Delegated.Load() != 0 }

func (i *Issuer) wanted() bool {
	used := i.used.Load()
	return used != 0 && i.w.cfg.Clock.Now()-time.Duration(used) < idleAfter
}

// Current returns the lease that is in use, nil if there is none.
func (i *Issuer) Current() *Lease { return i.current.Load() }

// Pool returns the state of the pool of worker ids at the last look.
func (i *Issuer) Pool() Pool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pool
}

// Lease returns the lease in use. If there is none, it acquires a lease and waits for it as long as ctx
// lasts. It returns the errors of globalid.Service.Generate that do not concern IDs.
func (i *Issuer) Lease(ctx context.Context) (*Lease, error) {
	for {
		if l := i.current.Load(); l != nil {
			return l, nil
		}
		if err := i.inUse(ctx); err != nil {
			return nil, err
		}
		if err := i.w.cfg.Quorum(); err != nil {
			return nil, fmt.Errorf("namespace %q: %w", i.name, err)
		}
		p, err := i.acquire()
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

// inUse returns nil or seq.ErrRetired. Before seq.ErrRetired it looks at the stores, because the retirement
// may have been undone.
func (i *Issuer) inUse(ctx context.Context) error {
	ns, err := i.w.names.Known().Named(i.name)
	if err != nil || ns.InUse() == nil {
		return nil // an acquisition says what is wrong
	}
	v, err := i.w.names.Read(ctx)
	if err != nil {
		return err
	}
	if ns, err = v.Named(i.name); err != nil {
		return nil
	}
	return ns.InUse()
}

// acquire begins an acquisition, or joins the one under way, or tells why the last
// one failed.
func (i *Issuer) acquire() (*pending, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.pending != nil {
		return i.pending, nil
	}
	if i.failed != nil && i.w.cfg.Clock.Now() < i.retryAt {
		return nil, i.failed
	}
	p := &pending{done: make(chan struct{})}
	if !i.w.spawn(func(ctx context.Context) { i.run(ctx, p) }) {
		return nil, fmt.Errorf("namespace %q: %w", i.name, seq.ErrShuttingDown)
	}
	i.pending = p
	return p, nil
}

// run is one acquisition, in the background: it outlives the requests that
// wait for it, since the next ones want the same.
func (i *Issuer) run(ctx context.Context, p *pending) {
	if i.current.Load() == nil { // no other call was faster
		ctx, cancel := context.WithTimeout(ctx, acquireBound)
		p.err = i.w.leavingError(i.gain(ctx))
		cancel()
	}
	if p.err != nil {
		p.err = fmt.Errorf("namespace %q datacenter %d: %w", i.name, i.w.cfg.Node.Datacenter.ID, p.err)
		i.w.log.Warn("no worker id", "error", p.err)
	}
	i.mu.Lock()
	i.pending, i.failed, i.retryAt = nil, p.err, i.w.cfg.Clock.Now()+acquirePause
	i.mu.Unlock()
	close(p.done)
}

// gain gets a worker id. A crash anywhere leaves a promise and at most a window
// above the clock behind, of a worker id that is free once the lease has ended.
func (i *Issuer) gain(ctx context.Context) error {
	p, err := i.w.record(ctx, i.name)
	if err != nil {
		return err
	}
	return try(func() ([]snowflake.Worker, error) { return i.candidates(ctx, p) },
		func(worker snowflake.Worker) error { return i.take(ctx, p, worker) })
}

// candidates looks at the stores for worker ids to try. At least one, or an error.
func (i *Issuer) candidates(ctx context.Context, p *pool) ([]snowflake.Worker, error) {
	i.mu.Lock()
	first := i.first
	i.mu.Unlock()
	only := i.w.cfg.Node.Worker
	if only != nil {
		if _, own := p.own.Find(*only); !own {
			return nil, fmt.Errorf("%w: worker id %d is the only one to be used here, and another Set has it", seq.ErrWorkersExhausted, *only)
		}
	}
	c, err := i.w.look(ctx, p, order{first: first, self: i.w.cfg.Holder.Session, latest: i.w.latest()},
		func(c choice) bool { return len(c.try) > 0 || only != nil })
	if err != nil {
		return nil, err
	}
	i.pooled(p.dc, c.pool)
	if only != nil {
		c = c.only(*only)
	}
	if len(c.try) == 0 {
		err := i.w.exhausted(c)
		if only != nil {
			err = fmt.Errorf("worker id %d is the only one to be used here: %w", *only, err)
		}
		return nil, err
	}
	return c.try, nil
}

// take gets one worker id, and puts it to use.
func (i *Issuer) take(ctx context.Context, p *pool, worker snowflake.Worker) error {
	l := &Lease{issuer: i, Namespace: p.Namespace, Layout: p.Layout.Name(), Datacenter: p.dc, Worker: worker, Register: p.register(worker)}
	clock := snowflake.WithClock(func() int64 { return i.w.cfg.Wall().UnixMilli() })
	sleeper := snowflake.WithSleeper(i.w.cfg.Sleep)
	hold, err := i.w.bid(ctx, &bid{w: i.w, pool: p, worker: worker,
		suits: func(m, _ Mark) bool { return m <= i.w.latest() },
		begin: func(floor Mark) (first Mark, err error) {
			now := i.w.now()
			if l.gen, err = snowflake.New(p.Layout, p.dc, worker, floor.tick(p.Layout), clock, sleeper); err != nil {
				return 0, issuing.Name(err)
			}
			l.floor = floor.tick(p.Layout)
			i.prefer(&worker)
			return target(now, floor, i.w.cfg.Window), nil
		},
		confirmed: func(round uint64, first Mark) (leased bool) {
			i.prefer(nil)
			l.Round = round
			l.confirm(first)
			i.w.mu.Lock()
			defer i.w.mu.Unlock()
			i.w.held[l.Register] = l
			return true
		}})
	switch {
	case err == nil:
		i.open(l, hold)
	case hold != nil: // it was won, and is another Set's
		hold.Drop()
		i.w.releases(l)
	}
	return err
}

// prefer sets the worker id that the next acquisition tries first, nil for none.
func (i *Issuer) prefer(worker *snowflake.Worker) {
	i.mu.Lock()
	i.first = worker
	i.mu.Unlock()
}

// open puts a lease to use that is among the held.
func (i *Issuer) open(l *Lease, hold ownership.Lease) {
	i.current.Store(l)
	i.w.mu.Lock()
	l.hold = hold
	lost := i.w.held[l.Register] != l
	i.w.mu.Unlock()
	if lost { // and given up before it had its hold
		i.current.CompareAndSwap(l, nil)
		hold.Drop()
	}
	i.w.log.Info("worker id acquired", "namespace", i.name, "datacenter", l.Datacenter, "worker", l.Worker,
		"round", l.Round, "confirmed", l.Mark().Time())
	l.warnEnd()
	i.w.news.fire()
	i.w.wake.Kick()
}

// warnEvery is the time between two warnings of the near end of a layout.
const warnEvery = 24 * time.Hour

// nobody is no session. It asks for the worker ids, so that the ids of this node show as held, too.
const nobody seq.Session = 0

// Show returns the worker ids of a namespace that have a register, by datacenter and worker, and the names
// of the nodes of their sessions.
func (w *Workers) Show(ctx context.Context, ns *namespaces.Namespace) ([]Used, map[seq.Session]string, error) {
	found, err := w.cfg.ReadPrefix(ctx, nobody, prefixOf(ns.Name))
	return survey(ns.Name, found, nobody, w.latest()), w.nodes(), err
}

// watch looks how full the pool of the lease's worker ids is.
func (l *Lease) watch(ctx context.Context) {
	w := l.issuer.w
	found, err := w.cfg.ReadPrefix(ctx, nobody, prefixIn(l.Namespace.Name, l.Datacenter))
	if err != nil {
		return // the stores have other ways to be noticed
	}
	used, own := survey(l.Namespace.Name, found, nobody, w.latest()), w.names.Own(&l.Namespace, l.Datacenter)
	l.issuer.pooled(l.Datacenter, poolOf(among(used, own, w.latest()), own))
}

// pooled keeps how full a pool is, and tells when it gets crowded.
func (i *Issuer) pooled(dc snowflake.Datacenter, p Pool) {
	i.mu.Lock()
	was := i.pool
	i.pool = p
	i.mu.Unlock()
	if p.Crowded() && !was.Crowded() {
		i.w.log.Warn("worker ids run short", "namespace", i.name, "datacenter", dc, "held", p.Held, "pool", p.Size)
	}
}

// warnEnd tells of a layout that runs out within a year, once a day.
func (l *Lease) warnEnd() {
	i, layout := l.issuer, l.Namespace.Layout
	left := layout.Remaining(i.w.cfg.Wall())
	if left > snowflake.ExhaustionWarning {
		return
	}
	clock := i.w.cfg.Clock.Now()
	i.mu.Lock()
	tell := i.warned == 0 || clock-i.warned > warnEvery
	if tell {
		i.warned = max(1, clock)
	}
	i.mu.Unlock()
	if tell {
		i.w.log.Warn("layout runs out", "namespace", i.name, "layout", layout.String(),
			"at", layout.Exhausted(), "days left", int(left.Hours()/24))
	}
}

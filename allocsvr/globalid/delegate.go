package globalid

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Limits of a delegated window. The longest is ten minutes below what the stores let a
// mark be ahead of their clocks, so that clocks may be minutes apart.
const (
	DefaultDelegation = 10 * time.Minute
	MinDelegation     = time.Second
	MaxDelegation     = 50 * time.Minute
)

// holderName is what people see of a client: nothing that could break a line of a log.
var holderName = regexp.MustCompile(`^[!-~]{0,64}$`)

// wish is what a client asks for.
type wish struct {
	holder  string
	window  time.Duration
	extends bool // the window that is named, as the client got it
	named
}

// named is what tells a window of a client from all others, in its namespace.
type named struct {
	datacenter snowflake.Datacenter
	worker     snowflake.Worker
	confirmed  mark
}

// validate: seq.ErrBadArgument. The worker id is held against its layout later.
func (w wish) validate() error {
	switch {
	case !holderName.MatchString(w.holder):
		return fmt.Errorf("%w: holder %.64q, expected %s", seq.ErrBadArgument, w.holder, holderName)
	case w.window < MinDelegation || w.window > MaxDelegation:
		return fmt.Errorf("%w: window %v, expected %v to %v", seq.ErrBadArgument, w.window, MinDelegation, MaxDelegation)
	case w.extends && w.confirmed == 0:
		return fmt.Errorf("%w: a worker id to extend and no mark", seq.ErrBadArgument)
	case !w.extends && w.named != named{}:
		return fmt.Errorf("%w: a worker id, datacenter id or mark, and nothing to extend", seq.ErrBadArgument)
	}
	return nil
}

// names says whether the wish is to extend the window that ends at the mark.
func (w wish) names(dc snowflake.Datacenter, worker snowflake.Worker, m mark) bool {
	return w.extends && w.named == named{dc, worker, m}
}

// delegation is a window that only the client who asked for it may use.
//
//	floor < tick <= last; W stores have the register's max at or above confirmed;
//	the mark was at floor when W stores promised, and nobody steps it in between
type delegation struct {
	ns          Namespace // as it is recorded
	datacenter  snowflake.Datacenter
	worker      snowflake.Worker
	floor, last snowflake.Tick
	confirmed   mark
	continues   bool // the window that was named, without a hole
}

// validUntil is when the last tick is over.
func (d delegation) validUntil() time.Time {
	at, err := d.ns.Layout.TimeOf(d.last + 1)
	if err != nil {
		return d.ns.Layout.Exhausted()
	}
	return at
}

// delegate gets a client a worker id and a window of its own. The node never uses the
// id itself and attaches no lease to it: the mark alone keeps it apart, since whoever
// takes it later starts above. Errors are those of Generate and seq.ErrBadArgument; with
// any of them nothing is granted. Safe to retry, though every grant costs a worker id
// until its window is over.
func (s *Service) delegate(ctx context.Context, ref Ref, w wish) (delegation, error) {
	if err := w.validate(); err != nil {
		return delegation{}, fmt.Errorf("delegate: %w", err)
	}
	i, err := s.find(ctx, ref)
	if err != nil {
		return delegation{}, fmt.Errorf("delegate: %w", err)
	}
	if s.isLeaving() {
		return delegation{}, fmt.Errorf("delegate: namespace %q: %w", i.name, seq.ErrShuttingDown)
	}
	d, err := s.delegateIn(ctx, i.name, w)
	if err != nil && s.isLeaving() {
		err = fmt.Errorf("%w: %w", seq.ErrShuttingDown, err)
	}
	if err != nil {
		err = fmt.Errorf("delegate: namespace %q datacenter %d: %w", i.name, s.cfg.DatacenterID, err)
		// The client tells people; it may ask often.
		s.log.Debug("no worker id for a client", "holder", w.holder, "error", err)
		return delegation{}, err
	}
	i.delegated.Add(1)
	s.log.Info("worker id delegated", "namespace", i.name, "datacenter", d.datacenter, "worker", d.worker,
		"holder", w.holder, "confirmed", d.confirmed.time(), "continues", d.continues)
	return d, nil
}

func (s *Service) delegateIn(ctx context.Context, name string, w wish) (delegation, error) {
	ns, err := s.record(ctx, name)
	if err != nil {
		return delegation{}, err
	}
	dc, err := s.datacenterIn(ns.Layout)
	if err != nil {
		return delegation{}, err
	}
	if w.extends && w.worker > ns.Layout.MaxWorker() {
		return delegation{}, fmt.Errorf("%w: worker id %d, the layout has 0 to %d", seq.ErrBadArgument, w.worker, ns.Layout.MaxWorker())
	}
	if w.names(dc, w.worker, w.confirmed) && w.confirmed > s.now() {
		// Its window still keeps others away, so this takes nothing more from the pool.
		d, err := s.grant(ctx, ns, dc, w.worker, w)
		if err == nil || !isTaken(err) {
			return d, err
		}
	}
	var last error
	for range surveys {
		try, err := s.spare(ctx, ns, dc, w)
		if err != nil {
			return delegation{}, err
		}
		for _, worker := range try {
			d, err := s.grant(ctx, ns, dc, worker, w)
			if err == nil || !isTaken(err) {
				return d, err
			}
			last = err
		}
	}
	return delegation{}, fmt.Errorf("%w: others were faster %d times: %w", seq.ErrOverloaded, surveys, last)
}

// spare looks at the stores for worker ids to delegate: those with marks that the clock
// has passed, so that the window begins now, and only while the pool is not crowded. The
// rest is for nodes: without a worker id at one of them nobody is served. At least one,
// or an error.
func (s *Service) spare(ctx context.Context, ns Namespace, dc snowflake.Datacenter, w wish) ([]snowflake.Worker, error) {
	found, err := s.look(ctx, prefixIn(ns.Name, dc))
	if err != nil {
		return nil, err
	}
	used := survey(ns.Name, found, nobody, s.now())
	if err := behind(used, s.now(), s.cfg.Holder.Session); err != nil {
		return nil, err
	}
	if err := kept(floorOf(used), s.now(), s.now()); err != nil {
		return nil, err
	}
	by := order{topDown: true}
	if w.names(dc, w.worker, w.confirmed) {
		by.first = &w.worker
	}
	c := choose(used, ns.Layout, by, s.rand())
	after := pool{held: c.pool.held + 1, size: c.pool.size}
	if len(c.try) == 0 || after.crowded() {
		if err := ahead(used, s.now()); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("the last %d %% are for nodes: %w", 100-crowdedPercent, exhausted(used, c.pool, s.nodes()))
	}
	return c.try, nil
}

// grant tries to delegate one worker id. A crash before the step is confirmed leaves a
// promise that bars nobody and perhaps a mark at fewer than W stores; one after it, a
// window that nobody uses.
//
// The mark is one that the clock has passed, or exactly the one that the client named.
// Then nobody has stepped since it was confirmed to this client, since every step that
// hands something out raises it, and the client's window goes on without a hole. What
// is granted is above the promised mark in either case, so a client that names what it
// never had gains nothing by it.
func (s *Service) grant(ctx context.Context, ns Namespace, dc snowflake.Datacenter, worker snowflake.Worker, w wish) (delegation, error) {
	d := delegation{ns: ns, datacenter: dc, worker: worker}
	_, err := s.bid(ctx, &bid{s: s, register: seq.WorkerRegister(ns.Name, uint64(dc), uint64(worker)),
		suits: func(m mark) bool { return m <= s.now() || w.names(dc, worker, m) },
		begin: func(floor mark) (mark, error) {
			d.floor, d.continues = floor.tick(ns.Layout), w.names(dc, worker, floor)
			return max(floor, s.now().add(w.window)), nil
		},
		confirmed: func(_ uint64, to mark) (leased bool) {
			d.last, d.confirmed = to.tick(ns.Layout), to
			return false
		}})
	if err != nil {
		return delegation{}, err
	}
	return d, nil
}

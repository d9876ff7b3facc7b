package workers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// surveys bounds the searches of one acquisition for free worker ids, if other nodes take the ids that it
// found.
const surveys = 3

// errTaken means that a worker id cannot be had after all. It does not leave this package.
var errTaken = errors.New("worker id is in use")

// issuing maps errors of handing out IDs to errors on the wire.
var issuing = namespaces.Names{
	{Local: snowflake.ErrTimeExhausted, Wire: seq.ErrTimeExhausted},
	{Local: snowflake.ErrClockRollback, Wire: seq.ErrClockRollback},
	{Local: snowflake.ErrBeforeEpoch, Wire: seq.ErrClockOff},
	{Local: snowflake.ErrOverflow, Wire: seq.ErrTickUsedUp},
}

// isTaken: another session got the worker id meanwhile; another one may be free.
func isTaken(err error) bool {
	return errors.Is(err, quorum.ErrNack) || errors.Is(err, quorum.ErrHeld) || errors.Is(err, errTaken)
}

// try takes one of the worker ids that candidates gives, others as often as all of them are
// taken meanwhile.
func try(candidates func() ([]snowflake.Worker, error), take func(snowflake.Worker) error) error {
	var last error
	for range surveys {
		workers, err := candidates()
		if err != nil {
			return err
		}
		for _, worker := range workers {
			err := take(worker)
			if err == nil || !isTaken(err) {
				return err
			}
			last = err
		}
	}
	return fmt.Errorf("%w: others were faster %d times: %w", seq.ErrOverloaded, surveys, last)
}

// pool is a namespace as the stores have it, which is fixed from now on, this node's datacenter in
// IDs of it, and the worker ids that nodes of this cluster may use.
type pool struct {
	namespaces.Namespace
	dc  snowflake.Datacenter
	own namespaces.Own
}

// at is a worker id of the pool.
func (p *pool) at(worker snowflake.Worker) place { return place{p.dc, worker} }

// register returns the register of a worker id of the pool.
func (p *pool) register(worker snowflake.Worker) seq.Register {
	return seq.WorkerRegister(p.Name, uint64(p.dc), uint64(worker))
}

// record returns the pool of a namespace, for this node.
func (w *Workers) record(ctx context.Context, name string) (*pool, error) {
	ns, own, err := w.names.Record(ctx, name)
	if err == nil {
		_, err = ns.Layout.TickAt(w.cfg.Wall())
		err = w.early(ns, issuing.Name(err))
	}
	return &pool{ns, w.cfg.Node.DatacenterIn(ns.Layout), own}, err
}

// look looks at the stores for worker ids to try: none, if none is free, or an error that says why
// none can be had. Where that is not enough, a Set other than the root asks that for more.
func (w *Workers) look(ctx context.Context, p *pool, by order, enough func(choice) bool) (c choice, err error) {
	if err := w.behind(); err != nil {
		return choice{}, err
	}
	for asked := false; ; asked = true {
		found, err := w.cfg.ReadPrefix(ctx, by.self, prefixIn(p.Name, p.dc))
		if err != nil {
			return choice{}, err
		}
		used := survey(p.Name, found, by.self, by.latest)
		if err := kept(floorOf(used), by.latest, w.now()); err != nil {
			return choice{}, err
		}
		c = choose(used, p.own, by, w.rand())
		if asked || enough(c) || !w.names.Member() {
			return c, nil
		}
		if p.own, err = w.names.More(ctx, p.Name, p.own); err != nil {
			if len(c.try) > 0 {
				w.log.Debug("no more worker ids from the root Set", "namespace", p.Name, "error", err)
				return c, nil
			}
			return choice{}, err
		}
	}
}

// exhausted says why no worker id of a choice is to be had.
func (w *Workers) exhausted(c choice) error {
	return exhausted(c.used, c.pool, w.nodes())
}

// nodes returns the names of the sessions that the stores told of.
func (w *Workers) nodes() map[seq.Session]string {
	names := map[seq.Session]string{w.cfg.Holder.Session: w.cfg.Name}
	for _, v := range w.cfg.Sessions() {
		names[v.Session] = v.Name
	}
	return names
}

// rand is a source of its own for one attempt.
func (w *Workers) rand() *rand.Rand {
	w.mu.Lock()
	defer w.mu.Unlock()
	return rand.New(rand.NewPCG(w.random.Uint64(), 0))
}

// bid is one worker id on its way to this node, or to a client of it: its ownership.AcquireHandler.
type bid struct {
	w      *Workers
	pool   *pool
	worker snowflake.Worker
	// suits reports whether a worker id with that mark may be used by now; era is the floor of a
	// restored era, 0 for none.
	suits func(m, era Mark) bool
	// begin gives the first Mark above the floor, which is the highest of W promises: whatever
	// any holder before had confirmed, W stores have it, and one of those is among these.
	begin func(floor Mark) (first Mark, err error)
	// confirmed is called when W stores have the first Mark. It reports whether the id is leased.
	confirmed func(round uint64, first Mark) (leased bool)

	first Mark
	err   error
}

// bid acquires a worker id, and claims it meanwhile. If no hold was asked for, the result is nil. It
// returns errTaken if the id's mark does not suit or no longer suits, or if this node or another Set has
// the id. It returns seq.ErrWorkersKept if no other id would suit either.
func (w *Workers) bid(ctx context.Context, b *bid) (hold ownership.Lease, err error) {
	if err := b.Register().Validate(); err != nil {
		return nil, err
	}
	if !w.claim(b.Register()) {
		return nil, fmt.Errorf("%s: %w: at this node", b.Register(), errTaken)
	}
	defer w.unclaim(b.Register())
	for _, g := range ownership.Acquire(ctx, w.cfg.Holder, []*bid{b}) {
		hold = g.Hold
	}
	if b.err != nil {
		return hold, b.err
	}
	// Only now: what the root allots to another Set from here on, it gains the registers of.
	err = w.names.Mine(ctx, b.pool.Namespace, b.pool.dc, b.worker)
	if errors.Is(err, seq.ErrUnsafeChange) {
		err = fmt.Errorf("%w: %w", errTaken, err)
	}
	return hold, err
}

// claim has no other attempt of this node want the register; false if one does, or has it. Two
// attempts under the one session could get the same epoch, and both of them its window.
func (w *Workers) claim(reg seq.Register) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[reg] != nil || w.claimed[reg] {
		return false
	}
	w.claimed[reg] = true
	return true
}

func (w *Workers) unclaim(reg seq.Register) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.claimed, reg)
}

// Register implements ownership.AcquireHandler.
func (b *bid) Register() seq.Register { return b.pool.register(b.worker) }

// mark returns the mark of the worker id at the stores, or the root's mark if that is later.
func (b *bid) mark(found quorum.Outcome) Mark {
	span, _ := b.pool.own.Find(b.worker)
	return max(Mark(found.Max), Mark(span.Above))
}

// Free implements ownership.AcquireHandler.
func (b *bid) Free(found quorum.Outcome) bool {
	if b.suits(b.mark(found), Mark(found.Floor)) {
		return true
	}
	if b.err = kept(Mark(found.Floor), 0, b.w.now()); b.mark(found) > Mark(found.Floor) {
		b.err = fmt.Errorf("%s: %w: its mark is %s", b.Register(), errTaken, b.mark(found).Time())
	}
	return false
}

// Begin implements ownership.AcquireHandler. The mark may have risen since the look.
func (b *bid) Begin(_ seq.Epoch, found quorum.Outcome) (ceiling uint64, ok bool) {
	if !b.Free(found) {
		return 0, false
	}
	b.first, b.err = b.begin(b.mark(found))
	return uint64(b.first), b.err == nil
}

// Confirmed implements ownership.AcquireHandler.
func (b *bid) Confirmed(epoch seq.Epoch) bool { return b.confirmed(epoch.Round, b.first) }

// Failed implements ownership.AcquireHandler.
func (b *bid) Failed(at ownership.Stage, out quorum.Outcome) {
	switch {
	case at == ownership.Confirming:
		b.err = stepError(out.Err)
	case at == ownership.Promising && errors.Is(out.Err, quorum.ErrRefused): // it was ended: by Leave, or as one taken for dead
		b.err = fmt.Errorf("%w: %w", seq.ErrNoLease, out.Err)
	default:
		b.err = out.Err
	}
}

// stepError names why a mark was not taken. Stores refuse one that is too far beyond
// their own clocks; nothing else of a worker register can be refused.
func stepError(err error) error {
	if errors.Is(err, quorum.ErrRefused) && !errors.Is(err, quorum.ErrNack) {
		return fmt.Errorf("%w: %w", seq.ErrClockOff, err)
	}
	return err
}

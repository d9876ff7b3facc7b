package workers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
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

// record is the pool of a namespace, for this node.
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

// nodes are the names of the sessions that the stores told of.
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

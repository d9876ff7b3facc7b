package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// maxAllotted bounds the worker ids that a Set gets at a time, because each costs the root a register.
const maxAllotted = 256

// Allot, at the root, gives worker ids to another Set. A repeated call gives the same ids, unless the Set
// has them and they are not enough. Of a pool of n ids and s Sets, Allot gives n/2s at a time, and at most
// half of the free ids. The root keeps n/s. From a Set that has some ids it also keeps n/2s for each Set
// that has none. The argument others holds the clusters of all Sets except the root. Allot returns
// seq.ErrWorkersExhausted and the errors of Issuer.Delegate. It may be retried.
//
// First Allot records the ids as the Set's. From then on each node of the root leaves them alone when it
// looks, and it looks after every promise. Then this node acquires their registers. That fails for ids that
// a node holds, and ends the attempts of other nodes. It shows the highest mark of an ID that was ever made
// under them, and the Set begins above that mark.
func (w *Workers) Allot(ctx context.Context, cluster string, others []string, wish namespaces.AllotmentRequest) error {
	for range surveys {
		p, err := w.names.For(ctx, wish)
		if err != nil {
			return err
		}
		reserved, done := reservedOf(p.Allotted, cluster, wish)
		if done {
			return nil
		}
		if reserved == nil {
			picked, err := w.pickFor(ctx, cluster, others, p, wish)
			if err != nil {
				return err
			}
			picked, err = w.names.Reserve(ctx, picked)
			if errors.Is(err, seq.ErrUnsafeChange) {
				continue
			}
			if err != nil {
				return err
			}
			reserved = &picked
		}
		left, err := w.fence(ctx, *reserved)
		if err != nil {
			return err
		}
		if err := w.names.Confirm(ctx, *reserved, left); err != nil {
			return err
		}
		if left != nil {
			w.log.Info("worker ids allotted to a Set", "cluster", cluster, "namespace", left.Namespace, "datacenter", left.Datacenter, "first", left.First, "last", left.Last)
		}
	}
	p, err := w.names.For(ctx, wish)
	if err != nil {
		return err
	}
	if _, done := reservedOf(p.Allotted, cluster, wish); done {
		return nil
	}
	return fmt.Errorf("%w: others were faster %d times", seq.ErrOverloaded, surveys)
}

// reservedOf looks among what a Set was given for something that is to be confirmed yet, and says
// whether there is nothing more to do for the wish.
func reservedOf(allotted []namespaces.Allotment, cluster string, wish namespaces.AllotmentRequest) (reserved *namespaces.Allotment, done bool) {
	size, there := uint64(0), wish.Worker == nil
	for _, a := range allotted {
		if a.Cluster != cluster {
			continue
		}
		if a.Above == 0 {
			reserved = &a
			continue
		}
		size += a.Size()
		there = there || a.First <= *wish.Worker && *wish.Worker <= a.Last
	}
	if wish.Worker != nil {
		return reserved, there
	}
	return reserved, size > wish.Have
}

// pickFor chooses what a Set is given, out of the largest run of free worker ids, from above.
func (w *Workers) pickFor(ctx context.Context, cluster string, others []string, p namespaces.Pool, wish namespaces.AllotmentRequest) (a namespaces.Allotment, err error) {
	found, err := w.cfg.ReadPrefix(ctx, nobody, prefixIn(p.Name, p.Datacenter))
	if err != nil {
		return a, err
	}
	used := among(survey(p.Name, found, nobody, w.now()), p.Own, w.now())
	if err := kept(floorOf(used), w.now(), w.now()); err != nil {
		return a, err
	}
	a = namespaces.Allotment{Namespace: p.Name, Datacenter: p.Datacenter, Cluster: cluster}
	var held namespaces.Own
	for _, u := range used {
		if !u.Free {
			held = append(held, namespaces.Span{First: u.Worker, Last: u.Worker})
		}
	}
	free := p.Own.Less(held)
	if only := wish.Worker; only != nil {
		if _, ok := free.Find(*only); !ok {
			return a, fmt.Errorf("worker id %d: the root Set does not have it free: %w", *only, exhausted(used, poolOf(used, p.Own), w.nodes()))
		}
		a.First, a.Last = *only, *only
		return a, nil
	}
	part, keep, least := apportion(cluster, others, p)
	if free.Size() < least || p.Own.Size() <= keep {
		return a, fmt.Errorf("the root Set keeps its last %d: %w", keep, exhausted(used, poolOf(used, p.Own), w.nodes()))
	}
	run := slices.MaxFunc(free, func(x, y namespaces.Span) int { return cmp.Compare(x.Size(), y.Size()) })
	size := min(part, maxAllotted, max(1, free.Size()/2), p.Own.Size()-keep, run.Size())
	a.First, a.Last = run.Last-snowflake.Worker(size)+1, run.Last
	return a, nil
}

// apportion returns how many worker ids of a pool a Set gets at a time, how many the root then keeps, and
// how many must be free. A Set without any ids gets those that the root has kept for it.
func apportion(cluster string, others []string, p namespaces.Pool) (part, keep, least uint64) {
	whole, sets := uint64(p.Layout.MaxWorker())+1, uint64(len(others))+1
	part, keep = max(1, whole/(2*sets)), max(1, whole/sets)
	has := func(cluster string) bool {
		return slices.ContainsFunc(p.Allotted, func(a namespaces.Allotment) bool { return a.Cluster == cluster && a.Above > 0 })
	}
	if !has(cluster) {
		return part, keep, 1
	}
	for _, other := range others {
		if !has(other) {
			keep += part
		}
	}
	return part, keep, 2
}

// fence gains the registers of an allotment, and gives the longest run of those that it gained and
// of which the mark is over; nil if there is none.
func (w *Workers) fence(ctx context.Context, a namespaces.Allotment) (*namespaces.Allotment, error) {
	var bids []*fence
	for worker := a.First; worker <= a.Last; worker++ {
		f := &fence{worker: worker, register: seq.WorkerRegister(a.Namespace, uint64(a.Datacenter), uint64(worker))}
		if !w.claim(f.register) {
			continue
		}
		defer w.unclaim(f.register)
		bids = append(bids, f)
	}
	ownership.Acquire(ctx, w.cfg.Holder, bids)
	var best, run *namespaces.Allotment
	for _, f := range bids {
		if f.err != nil {
			return nil, f.err // it may not be another's: nothing is known of it
		}
		if !f.won || f.mark > w.now() {
			run = nil
			continue
		}
		if run == nil || run.Last+1 != f.worker {
			run = &namespaces.Allotment{Namespace: a.Namespace, Datacenter: a.Datacenter, Cluster: a.Cluster, First: f.worker, Above: 1}
		}
		run.Last, run.Above = f.worker, max(run.Above, uint64(f.mark))
		if best == nil || run.Size() > best.Size() {
			copied := *run
			best = &copied
		}
	}
	return best, nil
}

// fence is an ownership.AcquireHandler that ends once W stores have promised: under every lower epoch nothing more
// is confirmed.
type fence struct {
	register seq.Register
	worker   snowflake.Worker
	won      bool
	mark     Mark
	err      error
}

// Register implements ownership.AcquireHandler.
func (f *fence) Register() seq.Register { return f.register }

// Free implements ownership.AcquireHandler.
func (f *fence) Free(quorum.Outcome) bool { return true }

// Begin implements ownership.AcquireHandler.
func (f *fence) Begin(_ seq.Epoch, found quorum.Outcome) (uint64, bool) {
	f.won, f.mark = true, Mark(found.Max)
	return 0, false
}

// Confirmed implements ownership.AcquireHandler. It is not called: no mark is wanted.
func (f *fence) Confirmed(seq.Epoch) bool { return false }

// Failed implements ownership.AcquireHandler.
func (f *fence) Failed(_ ownership.Stage, out quorum.Outcome) {
	if !isTaken(out.Err) {
		f.err = out.Err
	}
}

// Allotted returns the allotments of a namespace to other Sets, at the root. In another Set it returns the
// Set's own allotments.
func (w *Workers) Allotted(name string) []namespaces.Allotment {
	return slices.DeleteFunc(slices.Clone(w.names.Known().Allotments), func(a namespaces.Allotment) bool { return a.Namespace != name })
}

package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/internal/storecare"
	"github.com/seqsvr/seqsvr/internal/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"

	"github.com/seqsvr/seqsvr/seq"
)

const (
	// tryTime is how long an operator waits for a command, as seqctl's --timeout.
	tryTime = time.Minute
	// orderTime is how long an order may take once nothing disturbs it any more.
	orderTime = 3 * time.Minute
)

// order is what operators are told to do. It outlives them: whoever takes it up gives
// the same command again. Guarded by world.mu.
type order struct {
	verb  string
	host  string // the store to go
	force string // why, although it serves
	copy  int    // which backup, counted from the latest
	from  *saved // that one, once it was chosen
	same  bool   // the new store is made on the machine of the old one, under its name
	fresh *host  // the new store
	made  []*host
	done  bool
}

// String is the order in a few words.
func (o *order) String() string { return o.verb + " " + o.host }

// assembleCare makes the operators and the machines for more stores.
func (w *world) assembleCare() {
	for i := range spares {
		w.spare(w.opts.Stores + i)
	}
	for i := range 2 {
		w.newHost(operatorHost, fmt.Sprintf("op%d", i+1), i)
	}
}

// pending are the orders that are not carried out yet, and are no mere look at the
// stores. Needs w.mu.
func (w *world) pending() []*order {
	return slices.DeleteFunc(w.undone(), func(o *order) bool { return o.verb == "backup" || o.verb == "abort" })
}

// undone are all orders that are not carried out yet. Needs w.mu.
func (w *world) undone() []*order {
	var out []*order
	for _, h := range w.of(operatorHost) {
		for _, o := range h.queue {
			if !o.done && !slices.Contains(out, o) {
				out = append(out, o)
			}
		}
	}
	return out
}

// give tells an operator to carry an order out.
func (w *world) give(to string, o *order) {
	h := w.host(to)
	w.mu.Lock()
	h.queue = append(h.queue, o)
	w.mu.Unlock()
	w.startOperator(h)
}

// startOperator starts a process that carries the orders of the host out, one after the
// other, and ends then.
func (w *world) startOperator(h *host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.up || w.life.Err() != nil || !slices.ContainsFunc(h.queue, func(o *order) bool { return !o.done }) {
		return
	}
	h.boot()
	life, ctx := h.life, h.ctx
	w.trace.add("%-8s starts, life %d", h.name, life)
	w.work.Go(func() {
		for o := w.nextOrder(h, life); o != nil; o = w.nextOrder(h, life) {
			if err := w.tryOrder(ctx, h, life, o, nil); err != nil {
				w.trace.add("%-8s has not done: %s: %v", h.name, o, err)
				w.mu.Lock()
				pause := w.between(200*time.Millisecond, 2*time.Second)
				w.mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		}
	})
}

// nextOrder is what there is to do; nil ends the process, if it has not ended already.
func (w *world) nextOrder(h *host, life int) *order {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !h.up || h.life != life {
		return nil
	}
	h.queue = slices.DeleteFunc(h.queue, func(o *order) bool { return o.done })
	if len(h.queue) == 0 {
		h.halt(true)
		return nil
	}
	return h.queue[0]
}

// tryOrder is one command of an operator. tell, if not nil, is told each step.
func (w *world) tryOrder(ctx context.Context, h *host, life int, o *order, tell func(n int, name string)) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	n := 0
	say := func(name string) {
		w.mu.Lock()
		n++
		w.trace.add("%-8s %s, step %d: %s", h.name, o, n, name)
		w.point(h, nil, fmt.Sprintf("op.%d", n))
		w.mu.Unlock()
		if tell != nil {
			tell(n, name)
		}
		select { // whoever is killed here has not begun the step
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
	var err error
	if o.verb == "restore" {
		err = w.restore(ctx, h, o, say)
	} else {
		err = w.care(ctx, h, life, o, say)
	}
	if err == nil && ctx.Err() == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !o.done {
			o.done = true
			w.stats.Orders[o.verb]++
			w.trace.add("%-8s has done: %s", h.name, o)
		}
	}
	return errors.Join(err, ctx.Err())
}

// care carries out what the code of seqctl store does.
func (w *world) care(ctx context.Context, h *host, life int, o *order, say func(string)) error {
	handed := w.check.handedOut()
	c, err := storecare.Open(ctx, w.addresses(), w.through(h, life))
	if err != nil {
		return err
	}
	if o.verb == "backup" {
		say("read the stores")
		err = w.backup(ctx, h, c, handed)
	} else {
		err = w.change(ctx, c, o, say)
	}
	return errors.Join(err, c.Close())
}

func (w *world) change(ctx context.Context, c *storecare.Care, o *order, say func(string)) error {
	var fresh *host
	if o.verb == "replace" || o.verb == "grow" {
		var err error
		if fresh, err = w.newcomer(ctx, c, o, say); err != nil || fresh == nil {
			return err
		}
	}
	var steps []storecare.Step
	var err error
	switch o.verb {
	case "replace":
		steps, err = c.Replace(ctx, o.host, fresh.name, o.force)
	case "grow":
		steps, err = c.Add(ctx, fresh.name)
	case "shrink":
		steps, err = c.Remove(o.host, "")
	case "abort":
		steps, err = c.Abort()
	}
	switch {
	case err == nil:
		return storecare.Run(ctx, steps, say)
	case errors.Is(err, storecare.ErrNotNew): // somebody has aborted what it was made for
		w.mu.Lock()
		o.fresh = nil
		w.mu.Unlock()
	case errors.Is(err, storecare.ErrUnderWay) && o.verb != "abort":
		return w.goBack(ctx, c, say)
	case errors.Is(err, storecare.ErrNoMember), errors.Is(err, storecare.ErrTooFew), errors.Is(err, storecare.ErrNothing), errors.Is(err, storecare.ErrAlive):
		return nil // there is nothing to be done any more
	}
	return err
}

// errAgain: one obstacle is out of the way, and the order is still to be done.
var errAgain = errors.New("the change under way was given up")

// goBack gives up a change that cannot be finished.
func (w *world) goBack(ctx context.Context, c *storecare.Care, say func(string)) error {
	steps, err := c.Abort()
	if err == nil {
		err = storecare.Run(ctx, steps, say)
	}
	if err == nil {
		err = errAgain
	}
	return err
}

// newcomer is the store that an order brings in; nil if there is no machine left for it.
// If its disk is lost on the way, the change is given up, and another one is made.
func (w *world) newcomer(ctx context.Context, c *storecare.Care, o *order, say func(string)) (*host, error) {
	w.mu.Lock()
	h := o.fresh
	gone := h != nil && h.forfeit
	if h == nil {
		if h = w.machine(o); h == nil {
			w.mu.Unlock()
			return nil, nil
		}
		o.fresh = h
		h.lost, h.forfeit = false, false
		h.disk.install(w.learner(h.name))
		defer w.startStore(h)
	}
	w.mu.Unlock()
	if gone {
		_, listed := c.List().Learner()
		w.mu.Lock()
		o.fresh = nil
		w.mu.Unlock()
		if listed {
			return nil, w.goBack(ctx, c, say)
		}
		return nil, errAgain
	}
	return h, nil
}

// machine is where the new store of an order is made; nil if there is none left. Needs
// w.mu.
func (w *world) machine(o *order) *host {
	if !o.same {
		return w.fresh()
	}
	h := w.host(o.host)
	h.halt(false)
	if over := h.over; over != nil {
		w.mu.Unlock()
		<-over // the process has let go of the disk
		w.mu.Lock()
	}
	return h
}

// learner is what storesvr init --learner leaves on a disk. Needs w.mu.
func (w *world) learner(name string) content {
	w.made++
	c := content{registers: map[seq.Register]acceptor.State{}}
	c.meta.Identity = disk.Identity{Cluster: w.ident.Ref.Cluster, UUID: fmt.Sprintf("uuid-%s-%d", name, w.made), Name: name, Era: w.check.present(), Mapping: w.ident.Mapping, Learner: true}
	c.meta.Floors.Floors = w.floors(c.meta.Era)
	for s := range seq.SectionID(w.ident.Mapping.Sections()) {
		c.registers[seq.SectionRegister(s)] = acceptor.State{}
	}
	for _, r := range seq.FixedRegisters() {
		c.registers[r] = acceptor.State{}
	}
	return c
}

// connectAlloc is the start of an allocator that finds its stores and follows the list.
func (w *world) connectAlloc(h *host, p *allocProc) {
	dial, log := w.through(h, p.life), w.logger(h.name)
	var cluster storeclient.Cluster
	for err := errAgain; err != nil; {
		try, done := context.WithTimeout(p.ctx, 5*time.Second)
		// The addresses may be those of the era before: they are too few then, or too many.
		if cluster, err = storeclient.Connect(try, w.addresses(), dial); err == nil {
			err = cluster.Complete()
		}
		done()
		if p.ctx.Err() != nil {
			close(p.over)
			return
		}
		if err != nil {
			w.trace.add("%-8s finds no stores: %v", h.name, err)
			select {
			case <-p.ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	p.era = cluster.Identity.Ref.Era
	follow := storeclient.NewFollower(cluster, log, func(list quorum.MemberList, stores []quorum.NamedStore) error {
		return p.node.Reconfigure(list, stores)
	}, dial)
	if w.serve(h, p, allocsvr.Wiring{Identity: cluster.Identity, Stores: storeclient.NamedStores(cluster.Stores), Stale: follow.Kick}) {
		_ = follow.Run(p.ctx) // it ends with its context only
	}
}

// recover sees that every counter moves when the faults are over: with changes half done
// and their operators dead, and again after others have finished them.
func (w *world) recover(c *caller) {
	if w.opts.Care {
		w.mu.Lock()
		down := slices.ContainsFunc(w.pending(), func(o *order) bool { return o.verb == "restore" })
		w.mu.Unlock()
		if down {
			w.finishOrders()
		}
	}
	w.progress(c)
	if w.opts.Care {
		w.finishOrders()
		w.progress(c)
	}
}

// finishOrders has operators do what is left, undisturbed.
func (w *world) finishOrders() {
	for deadline := w.now() + orderTime; ; {
		for _, h := range w.of(operatorHost) {
			w.startOperator(h)
		}
		w.mu.Lock()
		left := w.undone()
		w.mu.Unlock()
		if len(left) == 0 {
			return
		}
		if w.now() > deadline {
			w.check.broken("liveness", "%s is not done %v after healing", left[0], orderTime)
			return
		}
		if !w.sleep(500 * time.Millisecond) {
			return
		}
	}
}

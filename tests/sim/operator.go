package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

const (
	// tryTime bounds an operator's wait for a command, as seqctl's --timeout.
	tryTime = time.Minute
	// orderTime bounds the time of an order once nothing disturbs it any more.
	orderTime = 3 * time.Minute
)

// operators carry out orders at the stores: changes of the member list, backups, restores.
type operators struct {
	part
	backups []saved
	made    uint64 // learners so far; part of their uuids
}

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
func (op *operators) assemble() {
	for i := range spares {
		op.w.hosts.spare(op.opts.Stores + i)
	}
	for i := range 2 {
		op.w.hosts.add(operatorHost, fmt.Sprintf("op%d", i+1)+op.w.tag(), i)
	}
}

// pending are the orders that are not carried out yet, and are no mere look at the
// stores. Needs w.mu.
func (op *operators) pending() []*order {
	return slices.DeleteFunc(op.undone(), func(o *order) bool { return o.verb == "backup" || o.verb == "abort" })
}

// undone are all orders that are not carried out yet. Needs w.mu.
func (op *operators) undone() []*order {
	var out []*order
	for _, h := range op.w.hosts.of(operatorHost) {
		for _, o := range h.queue {
			if !o.done && !slices.Contains(out, o) {
				out = append(out, o)
			}
		}
	}
	return out
}

// give tells an operator to carry an order out.
func (op *operators) give(to string, o *order) {
	h := op.w.hosts.named(to)
	op.mu.Lock()
	h.queue = append(h.queue, o)
	op.mu.Unlock()
	op.start(h)
}

// startOperator starts a process that carries the orders of the host out, one after the
// other, and ends then.
func (op *operators) start(h *host) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if h.up || op.life.Err() != nil || !slices.ContainsFunc(h.queue, func(o *order) bool { return !o.done }) {
		return
	}
	h.boot()
	life, ctx := h.life, h.ctx
	op.trace.add("%-8s starts, life %d", h.name, life)
	op.work.Go(func() {
		for o := op.nextOrder(h, life); o != nil; o = op.nextOrder(h, life) {
			if err := op.tryOrder(ctx, h, life, o, nil); err != nil {
				op.trace.add("%-8s has not done: %s: %v", h.name, o, err)
				op.mu.Lock()
				pause := op.between(200*time.Millisecond, 2*time.Second)
				op.mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		}
	})
}

// nextOrder is what there is to do; nil ends the process, if it has not ended already.
func (op *operators) nextOrder(h *host, life int) *order {
	op.mu.Lock()
	defer op.mu.Unlock()
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
func (op *operators) tryOrder(ctx context.Context, h *host, life int, o *order, tell func(n int, name string)) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	n := 0
	say := func(name string) {
		op.mu.Lock()
		n++
		op.trace.add("%-8s %s, step %d: %s", h.name, o, n, name)
		op.w.point(h, nil, fmt.Sprintf("op.%d", n))
		op.mu.Unlock()
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
		err = op.restore(ctx, h, o, say)
	} else {
		err = op.care(ctx, h, life, o, say)
	}
	if err == nil && ctx.Err() == nil {
		op.mu.Lock()
		defer op.mu.Unlock()
		if !o.done {
			o.done = true
			op.stats.Orders[o.verb]++
			op.trace.add("%-8s has done: %s", h.name, o)
		}
	}
	return errors.Join(err, ctx.Err())
}

// care carries out what the code of seqctl store does.
func (op *operators) care(ctx context.Context, h *host, life int, o *order, say func(string)) error {
	era, handed := op.w.check.eras.present(), op.w.check.eras.handedOut()
	c, err := storeadmin.Open(ctx, op.w.addresses(), op.w.net.through(h, life))
	if err != nil {
		return err
	}
	if o.verb == "backup" {
		say("read the stores")
		err = op.backup(ctx, h, c, era, handed)
	} else {
		err = op.change(ctx, c, o, say)
	}
	return errors.Join(err, c.Close())
}

func (op *operators) change(ctx context.Context, c *storeadmin.Care, o *order, say func(string)) error {
	var fresh *host
	if o.verb == "replace" || o.verb == "grow" {
		var err error
		if fresh, err = op.newcomer(ctx, c, o, say); err != nil || fresh == nil {
			return err
		}
	}
	var steps []storeadmin.Step
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
		return storeadmin.Run(ctx, steps, say)
	case errors.Is(err, storeadmin.ErrNotNew): // somebody has aborted what it was made for
		op.mu.Lock()
		o.fresh = nil
		op.mu.Unlock()
	case errors.Is(err, storeadmin.ErrUnderWay) && o.verb != "abort":
		return op.goBack(ctx, c, say)
	case errors.Is(err, storeadmin.ErrNoMember), errors.Is(err, storeadmin.ErrTooFew), errors.Is(err, storeadmin.ErrNothing), errors.Is(err, storeadmin.ErrAlive):
		return nil // there is nothing to be done any more
	}
	return err
}

// errAgain: one obstacle is out of the way, and the order is still to be done.
var errAgain = errors.New("the change under way was given up")

// goBack gives up a change that cannot be finished.
func (op *operators) goBack(ctx context.Context, c *storeadmin.Care, say func(string)) error {
	steps, err := c.Abort()
	if err == nil {
		err = storeadmin.Run(ctx, steps, say)
	}
	if err == nil {
		err = errAgain
	}
	return err
}

// newcomer is the store that an order brings in; nil if there is no machine left for it.
// If its disk is lost on the way, the change is given up, and another one is made.
func (op *operators) newcomer(ctx context.Context, c *storeadmin.Care, o *order, say func(string)) (*host, error) {
	op.mu.Lock()
	h := o.fresh
	gone := h != nil && h.forfeit
	if h == nil {
		if h = op.machine(o); h == nil {
			op.mu.Unlock()
			return nil, nil
		}
		o.fresh = h
		h.lost, h.forfeit = false, false
		h.disk.install(op.learner(h.name))
		defer op.w.back.start(h)
	}
	op.mu.Unlock()
	if gone {
		_, listed := c.List().Learner()
		op.mu.Lock()
		o.fresh = nil
		op.mu.Unlock()
		if listed {
			return nil, op.goBack(ctx, c, say)
		}
		return nil, errAgain
	}
	return h, nil
}

// machine is where the new store of an order is made; nil if there is none left. Needs
// w.mu.
func (op *operators) machine(o *order) *host {
	if !o.same {
		return op.w.hosts.fresh()
	}
	h := op.w.hosts.named(o.host)
	h.halt(false)
	if over := h.over; over != nil {
		op.mu.Unlock()
		<-over // the process has let go of the disk
		op.mu.Lock()
	}
	return h
}

// learner is what storesvr init --learner leaves on a disk. Needs w.mu.
func (op *operators) learner(name string) content {
	op.made++
	c := content{registers: map[seq.Register]acceptor.State{}}
	c.meta.Identity = disk.Identity{Cluster: op.w.ident.Ref.Cluster, UUID: fmt.Sprintf("uuid-%s-%d", name, op.made), Name: name, Era: op.w.check.eras.present(), Mapping: op.w.ident.Mapping, Learner: true}
	c.meta.Floors.Floors = op.floors(c.meta.Era)
	for s := range seq.SectionID(op.w.ident.Mapping.Sections()) {
		c.registers[seq.SectionRegister(s)] = acceptor.State{}
	}
	for _, r := range seq.FixedRegisters() {
		c.registers[r] = acceptor.State{}
	}
	c.blank()
	return c
}

// finishOrders has operators do what is left, undisturbed.
func (op *operators) finish() {
	for deadline := op.now() + orderTime; ; {
		for _, h := range op.w.hosts.of(operatorHost) {
			op.start(h)
		}
		op.mu.Lock()
		left := op.undone()
		op.mu.Unlock()
		if len(left) == 0 {
			return
		}
		if op.now() > deadline {
			op.w.check.broken("liveness", "%s is not done %v after healing", left[0], orderTime)
			return
		}
		if !op.sleep(500 * time.Millisecond) {
			return
		}
	}
}

// ordered gives an order when it may be given and waits until it is done; false if that
// takes too long.
func (op *operators) ordered(o *order) bool {
	given := false
	for deadline := op.now() + 2*time.Minute; op.now() < deadline && op.sleep(200*time.Millisecond); {
		op.mu.Lock()
		over, done := op.w.faults.healed, o.done
		may := !given && op.w.faults.mayChange(o, op.w.hosts.named(o.host))
		op.mu.Unlock()
		switch {
		case over:
			return false
		case done:
			return true
		case may:
			given = true
			op.give("op1"+op.w.tag(), o)
		}
	}
	return false
}

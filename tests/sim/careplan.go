package sim

// The states of a store that is to be replaced, by Fault.Arg.
const (
	replaceTorn = iota
	replaceEmpty
	replaceOld
	replaceDead  // killed, and back later
	replaceAlive // by force
	replaceSame  // on its own machine, with a new disk
	replaceKinds
)

func injectReplace(w *world, f Fault) {
	h := w.hosts.named(f.Host)
	o := &order{verb: "replace", host: f.Host}
	w.mu.Lock()
	ok := w.faults.mayChange(o, h)
	lose := ok && !h.forfeit && int(f.Arg) < replaceDead
	if o.same = int(f.Arg) == replaceSame; ok && o.same {
		h.halt(false)
		h.lost = true
	}
	h.forfeit = h.forfeit || lose || ok && o.same
	w.mu.Unlock()
	if !ok {
		return
	}
	switch f.Verb = []string{"torn", "empty", "old", "", "", ""}[int(f.Arg)%replaceKinds]; {
	case lose:
		w.faults.loseDisk(h, f)
	case int(f.Arg) == replaceDead:
		w.procs.kill(h, 0)
		w.later(f.For, func() { w.procs.start(h) })
	case int(f.Arg) == replaceAlive:
		o.force = "by order"
	}
	w.ops.give("op1"+w.tag(), o)
}

// injectResize adds a store, or removes the store of the fault.
func injectResize(w *world, f Fault) {
	o := &order{verb: f.Verb, host: f.Host}
	w.mu.Lock()
	ok := w.faults.mayChange(o, w.hosts.named(f.Host))
	w.mu.Unlock()
	if ok {
		w.ops.give("op1"+w.tag(), o)
	}
}

// injectOrder has another operator save everything that there is at this moment, or give
// up what is under way.
func injectOrder(w *world, f Fault) {
	if f.Verb == "backup" && !w.isSet() { // it would be one of a cluster that is alone
		return
	}
	w.ops.give("op2"+w.tag(), &order{verb: f.Verb})
}

// injectRival has another operator do the same at the same time.
func injectRival(w *world, _ Fault) {
	w.mu.Lock()
	queue := w.hosts.named("op1" + w.tag()).queue
	w.mu.Unlock()
	for _, o := range queue {
		w.ops.give("op2"+w.tag(), o)
	}
}

// isSet says whether the cluster is what it is to be: one of several Sets in a run with these.
func (w *world) isSet() bool { return len(w.sets) == 1 || w.check.places.joined.Load() }

// injectDisaster loses the disks of W stores at one moment, so that only a backup is left.
func injectDisaster(w *world, f Fault) {
	o := &order{verb: "restore", copy: int(f.Arg)}
	w.mu.Lock()
	blank := 0
	for _, h := range w.hosts.all {
		if h.blank {
			blank++
		}
	}
	if w.ops.chosen(o) == nil || blank < w.opts.Stores || len(w.ops.pending()) > 0 {
		w.mu.Unlock()
		return
	}
	lost := w.list().Voters()[:w.list().W]
	for _, m := range lost {
		w.hosts.named(m.Name).forfeit = true
	}
	w.mu.Unlock()
	for _, m := range lost {
		w.faults.loseDisk(w.hosts.named(m.Name), Fault{Verb: "torn"})
	}
	w.ops.give("op1"+w.tag(), o)
}

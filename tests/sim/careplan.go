package sim

import (
	"math/rand/v2"
	"time"
)

// careVerbs are orders to operators, which stand in the schedule as faults do, and what
// gets in their way.
var careVerbs = map[string]func(w *world, f Fault){
	"replace": injectReplace, "grow": injectGrow, "shrink": injectShrink,
	"backup": injectBackup, "disaster": injectDisaster, "abort": injectAbort, "rival": injectRival,
}

// What becomes of a store that is to be replaced, by Fault.Arg.
const (
	replaceTorn = iota
	replaceEmpty
	replaceOld
	replaceDead  // killed, and back later
	replaceAlive // by force
	replaceSame  // on its own machine, with a new disk
	replaceKinds
)

// spared counts the voters of the newest list that live and are to stay, but for one. None
// can be spared before all are bound to one another, for which all are needed (decision
// 008). Needs w.mu.
func (w *world) spared(but *host) (n int, voter bool) {
	unbound := false
	for _, m := range w.list().Voters() {
		h := w.host(m.Name)
		leaves := false
		for _, o := range w.pending() {
			leaves = leaves || o.host == m.Name
		}
		there := !h.forfeit && h.disk.identity().UUID == m.UUID
		unbound = unbound || there && !h.disk.bound()
		switch {
		case h == but:
			voter = true
		case there && !leaves:
			n++
		}
	}
	if unbound {
		n = 0
	}
	return n, voter
}

// mayLose says whether what a store has may be lost without more being lost than the
// present list can stand, and the one that a change under way leads to. Needs w.mu.
func (w *world) mayLose(h *host) bool {
	if !w.opts.Care {
		gone := 0
		for _, s := range w.of(storeHost) {
			if s.forfeit {
				gone++
			}
		}
		return gone < w.ident.N-w.ident.W
	}
	n, voter := w.spared(h)
	need := w.list().W
	for _, o := range w.pending() {
		if o.verb == "grow" {
			need = max(need, (w.list().N()+1)/2+1)
		}
	}
	return !voter || n >= need
}

// mayChange says whether a change that takes that store out (nil: none) can be finished:
// one at a time, and as many stores are left as each of its lists needs. Needs w.mu.
func (w *world) mayChange(o *order, gone *host) bool {
	l := w.list()
	_, busy := l.Learner()
	if len(w.pending()) > 0 || busy {
		return false
	}
	n, voter := w.spared(gone)
	switch o.verb {
	case "grow":
		return l.N() < 5 && n >= max(l.W, (l.N()+1)/2+1)
	case "shrink":
		return voter && l.N() > 3 && n >= max(l.W, (l.N()-1)/2+1)
	}
	return voter && n >= min(l.W, l.N()-1)
}

func injectReplace(w *world, f Fault) {
	h := w.host(f.Host)
	o := &order{verb: "replace", host: f.Host}
	w.mu.Lock()
	ok := w.mayChange(o, h)
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
		w.loseDisk(h, f)
	case int(f.Arg) == replaceDead:
		w.kill(h, 0)
		w.later(f.For, func() { w.startHost(h) })
	case int(f.Arg) == replaceAlive:
		o.force = "by order"
	}
	w.give("op1", o)
}

func injectGrow(w *world, _ Fault) {
	o := &order{verb: "grow"}
	w.mu.Lock()
	ok := w.mayChange(o, nil)
	w.mu.Unlock()
	if ok {
		w.give("op1", o)
	}
}

func injectShrink(w *world, f Fault) {
	o := &order{verb: "shrink", host: f.Host}
	w.mu.Lock()
	ok := w.mayChange(o, w.host(f.Host))
	w.mu.Unlock()
	if ok {
		w.give("op1", o)
	}
}

// injectBackup has everything saved that there is at this moment.
func injectBackup(w *world, _ Fault) {
	w.give("op2", &order{verb: "backup"})
}

// injectAbort has another operator give up what is under way.
func injectAbort(w *world, _ Fault) { w.give("op2", &order{verb: "abort"}) }

// injectRival has another operator do the same at the same time.
func injectRival(w *world, _ Fault) {
	w.mu.Lock()
	queue := w.host("op1").queue
	w.mu.Unlock()
	for _, o := range queue {
		w.give("op2", o)
	}
}

// injectDisaster loses the disks of W stores at one moment. What is left is a backup.
func injectDisaster(w *world, f Fault) {
	o := &order{verb: "restore", copy: int(f.Arg)}
	w.mu.Lock()
	blank := 0
	for _, h := range w.hosts {
		if h.blank {
			blank++
		}
	}
	if w.chosen(o) == nil || blank < w.opts.Stores || len(w.pending()) > 0 {
		w.mu.Unlock()
		return
	}
	lost := w.list().Voters()[:w.list().W]
	for _, m := range lost {
		w.host(m.Name).forfeit = true
	}
	w.mu.Unlock()
	for _, m := range lost {
		w.loseDisk(w.host(m.Name), Fault{Verb: "torn"})
	}
	w.give("op1", o)
}

// orders are drawn with these weights.
var orders = []choice{
	{40, func(d *draw) Fault {
		return Fault{Verb: "replace", Host: d.store(), Arg: float64(d.rng.IntN(replaceKinds)), For: d.span(100e6, 20e9)}
	}},
	{22, func(*draw) Fault { return Fault{Verb: "grow"} }},
	{22, func(d *draw) Fault { return Fault{Verb: "shrink", Host: d.store()} }},
	{22, func(*draw) Fault { return Fault{Verb: "backup"} }},
	{14, func(d *draw) Fault { return Fault{Verb: "disaster", Arg: float64(d.rng.IntN(3))} }},
	{14, func(d *draw) Fault { return Fault{Verb: "seesaw", For: 4*d.o.Lease + d.span(0, 20e9)} }},
	{14, func(d *draw) Fault {
		return Fault{Verb: "contest", Host: d.alloc(), For: d.span(500e6, d.o.Lease)}
	}},
	{6, func(*draw) Fault { return Fault{Verb: "anhour"} }},
}

// obstacles are what gets in the way of an order, beside all other faults.
var obstacles = []choice{
	{30, func(d *draw) Fault { return Fault{Verb: "kill", Host: d.operator(), For: d.span(10e6, 20e9)} }},
	{8, func(d *draw) Fault { return Fault{Verb: "pause", Host: d.operator(), For: d.span(50e6, 15e9)} }},
	{6, func(d *draw) Fault { return Fault{Verb: "isolate", Host: d.operator(), For: d.span(100e6, 15e9)} }},
	{8, func(d *draw) Fault {
		return Fault{Verb: "cut", Host: d.operator(), Peer: d.store(), For: d.span(100e6, 15e9)}
	}},
	{8, func(*draw) Fault { return Fault{Verb: "rival"} }},
	{5, func(*draw) Fault { return Fault{Verb: "abort"} }},
	{16, killStore},
	{10, func(d *draw) Fault { return Fault{Verb: "kill", Host: d.alloc(), For: d.span(10e6, 12e9)} }},
	{8, func(d *draw) Fault { return Fault{Verb: "isolate", Host: d.server(), For: d.span(100e6, 15e9)} }},
	{8, func(d *draw) Fault { return Fault{Verb: "pause", Host: d.server(), For: d.span(50e6, 15e9)} }},
	{5, func(d *draw) Fault {
		return Fault{Verb: "slowdisk", Host: d.store(), Arg: 0.05 + 2*d.rng.Float64(), For: d.span(1e9, 15e9)}
	}},
	{4, func(d *draw) Fault { return Fault{Verb: "torn", Host: d.store(), For: d.span(10e6, 5e9)} }},
	{4, func(d *draw) Fault { return Fault{Verb: "eio", Host: d.store()} }},
	{2, func(d *draw) Fault { return Fault{Verb: "power", For: d.span(10e6, 5e9)} }},
}

// carePoints are where obstacles are aimed: the steps of an operator, and what the stores
// are told.
var carePoints = []string{"op.1", "op.2", "op.3", "op.4", "op.5", "adopt", "adopt.ok", "adopt.ok", "fill", "fill.ok", "fill.ok", "dump", "dump.ok", "bind.ok"}

// careSchedule draws the orders of a run, each with obstacles.
func careSchedule(o Options) []Fault {
	d := &draw{rng: rand.New(rand.NewPCG(o.Seed, 0xca7e)), o: o}
	first := 2 * time.Second
	out := []Fault{{At: o.Calm + d.span(0, first), Verb: "backup"}}
	for at := o.Calm + first; at < o.Length; at += time.Duration(15+d.rng.IntN(50)) * time.Second {
		f := d.pick(orders)
		f.At = at.Round(time.Millisecond)
		out = append(out, f)
		for range d.rng.IntN(5) {
			f := d.pick(obstacles)
			f.At = (at + d.span(0, 40*time.Second)).Round(time.Millisecond)
			if d.rng.IntN(4) > 0 {
				f.Point, f.Where = carePoints[d.rng.IntN(len(carePoints))], "*"
			}
			out = append(out, f)
		}
	}
	return out
}

package sim

import "time"

// etcdChoices are drawn in runs on etcd beside choices.
var etcdChoices = []choice{
	{30, func(d *draw) Fault { return Fault{Verb: "elect"} }},
	{10, func(d *draw) Fault { return Fault{Verb: "nospace", For: d.span(100e6, 4*d.o.Lease)} }},
	{5, func(d *draw) Fault { return Fault{Verb: "compact", For: d.span(50e6, 2e9)} }},
	{8, func(d *draw) Fault {
		return Fault{Verb: "sluggish", Arg: 0.05 + 2*d.rng.Float64()*d.rng.Float64(), For: d.span(1e9, 15e9)}
	}},
	{10, func(d *draw) Fault {
		return Fault{Verb: "late", Host: d.alloc(), Peer: d.store(), Arg: 2 * d.o.Lease.Seconds() * d.rng.Float64(), For: d.span(1e9, 15e9)}
	}},
	{10, func(d *draw) Fault { return Fault{Verb: "reprieve", Host: d.alloc(), Arg: 0.02 + 0.5*d.rng.Float64()} }},
	{10, func(d *draw) Fault { return Fault{Verb: "revive", Host: d.alloc(), Arg: 0.02 + 0.5*d.rng.Float64()} }},
	{6, func(d *draw) Fault {
		return Fault{Verb: "stillborn", Host: d.alloc(), Arg: 0.02 + d.rng.Float64(), For: d.span(10e6, 5e9)}
	}},
	{1, func(d *draw) Fault { return Fault{Verb: "rollback", Arg: float64(d.rng.IntN(8))} }},
}

// etcdPoints are where faults are aimed in runs on etcd beside points.
var etcdPoints = []point{{"renew", true}, {"condemn", true}, {"condemn.ok", true}, {"observe.ok", true}, {"end", true}, {"end.ok", true}, {"look.ok", true}}

// The faults that only one of the engines can have.
var (
	etcdVerbs  = []string{"elect", "nospace", "compact", "sluggish", "rollback", "reprieve", "revive", "wake", "stillborn"}
	storeVerbs = []string{"slowdisk", "full", "eio", "enospc", "astray", "old", "empty", "torn",
		"seesaw", "contest", "lonely", "stumble", "replace", "grow", "shrink", "backup", "abort", "disaster", "rival"}
)

func onMembers(w *world, f Fault, do, undo func(m *members)) {
	m := w.back.(*onEtcd).members
	w.mu.Lock()
	defer w.mu.Unlock()
	do(m)
	if undo != nil {
		w.after(f.For, w.locked(func() {
			if !w.faults.healed {
				undo(m)
			}
		}))
	}
}

// injectElect has the leader go: nothing is answered until there is another.
func injectElect(w *world, f Fault) {
	onMembers(w, f, func(m *members) {
		if m.leader != nil {
			m.elect()
		}
	}, nil)
}

// injectNoSpace raises the alarm NOSPACE, and disarms it.
func injectNoSpace(w *world, f Fault) {
	onMembers(w, f, func(m *members) {
		m.full++
		m.etcd.SetFull(true)
	}, func(m *members) {
		m.full--
		m.etcd.SetFull(m.full > 0)
	})
}

// injectCompact has nothing done for a while, as while history is compacted. That is all that is
// to be seen of it: no old revision is ever asked for.
func injectCompact(w *world, f Fault) {
	onMembers(w, f, func(m *members) { m.stalled = max(m.stalled, w.now()+f.For) }, nil)
}

// injectSluggish has all that etcd does take longer.
func injectSluggish(w *world, f Fault) {
	onMembers(w, f, func(m *members) { m.slow = time.Duration(f.Arg * float64(time.Second)) }, func(m *members) { m.slow = 0 })
}

package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/api"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// world is one cluster of a run, mostly the only one: its parts, and how it begins and ends. Each
// part is a type with a job of its own in a file of its own; they find each other here. The worlds
// of a run with Sets share the engine, the network, its links, and what callers were promised;
// callers, routers and coordinators are hosts of the first one.
type world struct {
	*engine
	sets  []*world // all of the run, the root Set first
	set   int      // which of them this is
	ident quorum.Identity
	whole seq.Mapping // the mapping of ident with the space that is added later
	dir   string      // for files of parked counters
	// limits of all nodes. If nil, the defaults.
	limits *api.Limits

	back   backend
	hosts  *hosts
	links  *links
	net    *network
	procs  *processes
	ops    *operators
	faults *faults
	check  *checker
	moves  *coordinators
}

// part is what every part of a run has: what all share, and the way to the others.
type part struct {
	*engine
	w *world
}

// clusterName is the id of the cluster, of several Sets the root's.
const clusterName = "sim"

// scarce is enough bytes for the counters of three sections.
const scarce = 150

func newWorld(o Options, dir string) *world {
	e := &engine{opts: o, begin: time.Now(), rng: rand.New(rand.NewPCG(o.Seed, 0x5e9)), kick: make(chan struct{}, 1)}
	e.life, e.end = context.WithCancel(context.Background())
	e.trace.on, e.trace.begin = o.Trace, e.begin
	e.stats.Faults, e.stats.Orders = map[string]int{}, map[string]int{}
	var all []*world
	for i := range max(1, o.Sets) {
		w := &world{engine: e, dir: dir, set: i}
		if o.Scarce {
			w.limits = api.NewLimits(0, 0, scarce)
		}
		p := part{e, w}
		w.hosts, w.procs, w.ops, w.faults, w.moves = &hosts{part: p}, &processes{part: p}, &operators{part: p}, &faults{part: p}, &coordinators{part: p}
		if i == 0 {
			w.net = &network{part: p, names: map[string]*methodName{}}
			w.links = &links{part: p, cuts: map[link]int{}, lags: map[*host]time.Duration{}, late: map[link]time.Duration{}, astray: map[*host]map[string]string{}, copied: map[*host]map[string]string{}}
			w.check = newChecker(w)
		} else {
			w.net, w.links, w.check = all[0].net, all[0].links, all[0].check.of(w)
		}
		w.back = newBackend(p)
		all = append(all, w)
	}
	for _, w := range all {
		w.sets = all
	}
	return all[0]
}

// root is the cluster of the root Set.
func (w *world) root() *world { return w.sets[0] }

// tag is the end of the names of a cluster's hosts: none, b, c.
func (w *world) tag() string { return tagOf(w.set) }

func tagOf(set int) string {
	if set == 0 {
		return ""
	}
	return string(rune('a' + set))
}

// cluster is the id of the cluster.
func (w *world) cluster() string {
	if w.set == 0 {
		return clusterName
	}
	return clusterName + "-" + w.tag()
}

// point is passed by a host; see faults.point. Needs w.mu.
func (w *world) point(h, by *host, name string) {
	for _, one := range w.sets {
		one.faults.point(h, by, name)
	}
}

// assemble makes the hosts of all clusters.
func (w *world) assemble() {
	m, err := seq.NewMapping(w.opts.spaces()...)
	if err != nil {
		panic(fmt.Sprintf("sim: mapping of the simulator: %v", err))
	}
	whole := m
	if w.opts.Late {
		if whole, _, err = m.Add(late()); err != nil {
			panic(fmt.Sprintf("sim: mapping of the simulator: %v", err))
		}
	}
	for _, one := range w.sets {
		one.whole = whole
		one.back.assemble(m)
		for i := range w.opts.Allocs {
			one.hosts.add(allocHost, allocName(i)+one.tag(), i)
		}
	}
	if len(w.sets) > 1 {
		w.moves.assemble()
	}
	for i := range w.opts.Routers {
		w.hosts.add(routerHost, fmt.Sprintf("r%d", i+1), i)
	}
	for i := range w.opts.Callers {
		w.hosts.add(callerHost, fmt.Sprintf("c%d", i+1), i).boot()
	}
}

// drive has callers at work until the faults are over, heals, and sees that everything
// makes progress again.
func (w *world) drive() {
	keys := w.keys()
	callers := make([]*caller, 0, w.opts.Callers)
	for i, h := range w.hosts.of(callerHost) {
		callers = append(callers, &caller{w: w, h: h, index: i, keys: keys, where: map[history.Key]string{}})
	}
	stop := make(chan struct{})
	done := make(chan struct{})
	w.work.Go(func() {
		defer close(done)
		w.setUp(callers[0])
		for _, c := range callers[1:] {
			w.work.Go(func() { c.run(stop) })
		}
		callers[0].run(stop)
	})
	select {
	case <-w.check.failed:
	case <-time.After(w.opts.Length):
		w.heal()
		last := &caller{w: w, h: callers[0].h, index: len(callers), keys: keys, where: map[history.Key]string{}}
		w.recover(last)
		if w.opts.Clone && len(w.check.violations()) == 0 {
			w.clone()
			w.progress(last)
		}
	}
	close(stop)
	select {
	case <-w.check.failed:
	case <-done:
	}
}

// setUp makes what all callers use; until then nobody else is there.
func (w *world) setUp(c *caller) {
	ctx, cancel := context.WithTimeout(w.life, time.Minute)
	defer cancel()
	var err error
	if len(w.sets) > 1 {
		err = w.moves.join(ctx)
	}
	if err == nil {
		err = c.prepare(ctx)
	}
	if err == nil && w.opts.Care {
		err = c.tag(ctx, tagNames[0], 1)
	}
	if err != nil && w.life.Err() == nil {
		w.check.broken("liveness", "a new cluster does not serve: %v", err)
	}
}

// patience bounds the time of anything once all faults are over. It covers the longest lease and grace, the
// restarts, the patience with a taken name, and two leases in which an owner finds that its section cannot
// be kept. The arbiter causes no wait in that.
const patience = time.Minute

// heal ends all faults, and brings everything back that is not lost for good.
func (w *world) heal() {
	w.trace.add("HEAL")
	for _, one := range w.sets {
		if one.limits != nil {
			_ = one.limits.Set(0, 0, 0) // no bound: that is sound
		}
	}
	w.mu.Lock()
	for _, one := range w.sets {
		one.faults.healed, one.faults.armed = true, nil
	}
	w.links.bad = nil
	clear(w.links.cuts)
	clear(w.links.late)
	for _, h := range w.hosts.everywhere() {
		h.resume()
		if !w.opts.Beyond {
			continue
		}
		h.clock.setRate(1)
	}
	w.mu.Unlock()
	for _, one := range w.sets {
		one.restart()
	}
}

// restart brings back the cluster's servers.
func (w *world) restart() {
	w.back.heal()
	w.faults.unstray()
	for _, h := range w.hosts.servers() {
		if h.twinOf == "" {
			w.procs.start(h)
		}
	}
	w.work.Go(func() {
		for _, h := range w.hosts.of(allocHost) {
			if h.twinOf == "" {
				w.faults.drain(h.name, true)
			}
		}
	})
}

// progress sees that every counter moves again.
func (w *world) progress(c *caller) {
	ctx, cancel := context.WithTimeout(w.life, patience)
	defer cancel()
	for _, key := range c.keys {
		next := c.next
		if key.Space == exactSpace {
			next = c.anew
		}
		if err := next(ctx, key, 1); err != nil && w.life.Err() == nil {
			w.check.broken("liveness", "%v makes no progress %v after healing: %v", key, patience, err)
			return
		}
	}
	if err := c.tag(ctx, tagNames[0], 1); err != nil && w.life.Err() == nil {
		w.check.broken("liveness", "tag makes no progress %v after healing: %v", patience, err)
	}
}

// conclude ends the run: every process, and everything of the simulator's own.
func (w *world) conclude() {
	w.end()
	w.mu.Lock()
	for _, h := range w.hosts.everywhere() {
		h.halt(false)
	}
	w.dismiss()
	w.mu.Unlock()
	w.work.Wait()
}

func (w *world) result(faults []Fault) Result {
	calls := w.check.promises.history.Calls()
	if w.opts.Beyond { // U holds without any clock, M does only in strict spaces
		for i := range calls {
			calls[i].Unordered = calls[i].Unordered || calls[i].Err == "" && !w.check.promises.ordered(calls[i].Key)
		}
	}
	report := history.Check(calls)
	for _, v := range report.Violations {
		w.check.broken("history", "%s", v)
	}
	r := Result{Seed: w.opts.Seed, Engine: w.opts.Engine, Virtual: w.now(), Stats: w.stats, Requests: report.Requests, Errors: report.Errors,
		Violations: w.check.violations(), Events: w.trace.lines}
	for _, f := range faults {
		r.Faults = append(r.Faults, f.String())
	}
	return r
}

// recover sees that every counter moves when the faults are over.
func (w *world) recover(c *caller) {
	again := func() { w.progress(c) }
	if len(w.sets) > 1 {
		again = func() {
			w.moves.close()
			w.progress(c)
		}
	}
	for _, one := range w.sets {
		within := again
		again = func() { one.back.recover(within) }
	}
	again()
	w.check.shelf.settle(c)
	w.check.onces.audit(c)
}

// list is the newest member list of the present era.
func (w *world) list() quorum.MemberList { return w.check.eras.list(w.check.eras.present()) }

// addresses are what configuration files name: all stores of the present member list.
func (w *world) addresses() []string {
	var out []string
	for _, m := range w.list().Voters() {
		out = append(out, m.Name)
	}
	return out
}

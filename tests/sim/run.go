package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/seqsvr/seqsvr/internal/history"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Options of one run. OptionsOf draws them from a seed.
type Options struct {
	Seed     uint64
	Stores   int
	Allocs   int
	Callers  int
	Lease    time.Duration
	Length   time.Duration // of the faulty part
	Calm     time.Duration // before the first fault
	Latency  time.Duration // of a message, on average
	Disk     time.Duration // of a commit, at most
	Think    time.Duration // of a caller between two calls, on average
	Patience time.Duration // of a caller with one server
	Window   time.Duration // that is lent to a client, at most
	Ahead    time.Duration // how far nodes have the marks of their worker ids confirmed
	Routers  int
	Fixed    bool // each node has a worker id of its own
	Beyond   bool // clocks run beyond rho: M is not promised then
	Care     bool // operators change the stores, back up and restore
	Scarce   bool // until all is healed, nodes have hardly any memory for counters, and fold them
	Trace    bool // keep the events; Result.Events reads them
	// still leaves nothing to chance: clocks run true. sectionsWanted is for scenarios.
	still          bool
	sectionsWanted uint32
	// Faults are used instead of the ones that the seed gives, if not nil.
	Faults []Fault
}

// rho is what the rates of clocks are promised to keep to.
const rho = quorum.Rho

func (o Options) drift() float64 {
	switch {
	case o.still:
		return 0
	case o.Beyond:
		return 0.3
	}
	return rho
}

// W is the majority.
func (o Options) W() int { return o.Stores/2 + 1 }

// spaces of every run: steps are small, so that much of what is handed out is close to
// a ceiling.
func (o Options) spaces() []seq.Space {
	if o.sectionsWanted > 0 {
		return []seq.Space{{Name: seq.DefaultSpace, Sections: o.sectionsWanted, Step: 20}}
	}
	return []seq.Space{
		{Name: seq.DefaultSpace, Sections: 4, Step: 20},
		{Name: "strict", Sections: 1, Step: 15, Mode: seq.Strict},
		{Name: "unique", Sections: 1, Step: 30, Mode: seq.UniqueOnly},
	}
}

func (o Options) sections() int { return 6 }

// OptionsOf draws a run.
func OptionsOf(seed uint64) Options {
	rng := rand.New(rand.NewPCG(seed, 0x0b7))
	o := Options{Seed: seed, Stores: 3, Allocs: 3, Callers: 4, Length: 4 * time.Minute, Calm: 5 * time.Second,
		Latency: time.Millisecond, Disk: 4 * time.Millisecond, Think: 300 * time.Millisecond, Patience: 2 * time.Second}
	if rng.IntN(5) == 0 {
		o.Stores = 5
	}
	// Some seconds, so that an hour of virtual time is not all renewals.
	o.Lease = []time.Duration{3 * time.Second, 5 * time.Second, 8 * time.Second}[rng.IntN(3)]
	o.Think = time.Duration(500+rng.IntN(3500)) * time.Millisecond
	o.Length = 10 * time.Minute
	o.Latency = time.Duration(200+rng.IntN(8000)) * time.Microsecond
	o.Disk = time.Duration(500+rng.IntN(20000)) * time.Microsecond
	o.Beyond = rng.IntN(12) == 0
	o.Care = rng.IntN(4) == 0
	if rng.IntN(3) == 0 { // waits at a server for longer than its lease
		o.Patience = 2 * o.Lease
	}
	o.Window = []time.Duration{20 * time.Second, 5 * time.Minute, 50 * time.Minute}[rng.IntN(3)]
	o.Ahead = []time.Duration{time.Second, 3 * time.Second, 3 * time.Second}[rng.IntN(3)]
	o.Routers = rng.IntN(3)
	o.Fixed = rng.IntN(5) == 0
	return o
}

// Stats of one run.
type Stats struct {
	Events, Messages, Lost, Duplicated, Commits uint64
	Takeovers, Handoffs, Steps                  uint64
	Folded                                      uint64 // blocks of counters
	Numbers, IDs                                uint64
	Lent                                        uint64 // IDs made by clients of what they were lent
	Faults                                      map[string]int
	Orders                                      map[string]int // carried out by operators
}

// Result of one run.
type Result struct {
	Seed       uint64
	Virtual    time.Duration
	Stats      Stats
	Requests   int
	Errors     int
	Violations []Violation
	Faults     []string // the schedule
	Trace      []string
	// Events are the last so many events as text, if the run was traced; reading them
	// changes nothing in it, since it is over.
	Events func(most int) []string `json:"-"`
}

// Run simulates one cluster. It must be called in a bubble of testing/synctest. dir is
// for the files that allocators keep on their own disks.
func Run(o Options, dir string) Result {
	w := newWorld(o, dir)
	faults := o.Faults
	if faults == nil {
		faults = Schedule(o)
	}
	w.assemble()
	w.work.Go(w.loop)
	for _, h := range w.of(storeHost) {
		w.startStore(h)
	}
	for _, h := range w.of(allocHost) {
		w.schedule(10*time.Millisecond, func() { w.startAlloc(h) })
	}
	for _, h := range w.of(routerHost) {
		w.schedule(20*time.Millisecond, func() { w.startRouter(h) })
	}
	w.arm(faults)
	w.drive()
	w.conclude()
	return w.result(faults)
}

// conclude ends the run: every process, and everything of the simulator's own.
func (w *world) conclude() {
	w.end()
	w.mu.Lock()
	for _, h := range w.hosts {
		h.halt(false)
	}
	w.dismiss()
	w.mu.Unlock()
	w.work.Wait()
}

// assemble makes the hosts.
func (w *world) assemble() {
	m, err := seq.NewMapping(w.opts.spaces()...)
	if err != nil {
		panic(fmt.Sprintf("sim: mapping of the simulator: %v", err))
	}
	members := memberList(w.opts.Stores)
	w.ident = quorum.Identity{N: w.opts.Stores, W: w.opts.W(), R: w.opts.Stores - w.opts.W() + 1, Mapping: m, Members: members, Voting: true,
		MaxLease: 10 * time.Second,
		Ref:      quorum.Ref{Cluster: "sim", Era: 1, Members: 1, MembersHash: quorum.MembersHash(members)}}
	for i, member := range members {
		h := w.newHost(storeHost, member.Name, i)
		h.disk = newDisk(w, h)
		h.disk.format(member.UUID, w.bound())
	}
	if w.opts.Care {
		w.assembleCare()
	}
	for i := range w.opts.Allocs {
		w.newHost(allocHost, allocName(i), i)
	}
	for i := range w.opts.Routers {
		w.newHost(routerHost, fmt.Sprintf("r%d", i+1), i)
	}
	for i := range w.opts.Callers {
		w.newHost(callerHost, fmt.Sprintf("c%d", i+1), i).boot()
	}
}

// drive has callers at work until the faults are over, heals, and sees that everything
// makes progress again.
func (w *world) drive() {
	keys := w.keys()
	callers := make([]*caller, 0, w.opts.Callers)
	for i, h := range w.of(callerHost) {
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
	w.work.Go(w.snapshots)
	select {
	case <-w.check.failed:
	case <-time.After(w.opts.Length):
		w.heal()
		w.recover(&caller{w: w, h: callers[0].h, index: len(callers), keys: keys, where: map[history.Key]string{}})
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
	err := c.prepare(ctx)
	if err == nil && w.opts.Care {
		err = c.tag(ctx, tagNames[0], 1)
	}
	if err != nil && w.life.Err() == nil {
		w.check.broken("liveness", "a new cluster does not serve: %v", err)
	}
}

// snapshots keeps old contents of the disks, for those that are put back.
func (w *world) snapshots() {
	for w.sleep(7 * time.Second) {
		for _, h := range w.of(storeHost) {
			h.disk.remember()
		}
	}
}

// patience is how long anything may take once all faults are over: the longest lease and
// grace, the restarts, the patience with a taken name, and two leases in which an owner
// finds that its section cannot be kept. Nothing of that waits for the arbiter.
const patience = time.Minute

// heal ends all faults, and brings everything back that is not lost for good.
func (w *world) heal() {
	w.trace.add("HEAL")
	if w.limits != nil {
		_ = w.limits.Set(0, 0, 0) // no bound: that is sound
	}
	w.mu.Lock()
	w.healed = true
	w.armed, w.bad = nil, nil
	clear(w.cuts)
	clear(w.late)
	for _, h := range w.hosts {
		h.resume()
		if !w.opts.Beyond {
			continue
		}
		h.clock.setRate(1)
	}
	w.mu.Unlock()
	for _, h := range w.of(storeHost) {
		h.disk.mu.Lock()
		h.disk.slow, h.disk.full, h.disk.failNext = 0, false, nil
		h.disk.mu.Unlock()
	}
	w.unstray()
	for _, h := range w.servers() {
		if h.twinOf == "" {
			w.startHost(h)
		}
	}
	w.work.Go(func() {
		for _, h := range w.of(allocHost) {
			if h.twinOf == "" {
				w.drain(h.name, true)
			}
		}
	})
}

// progress sees that every counter moves again.
func (w *world) progress(c *caller) {
	ctx, cancel := context.WithTimeout(w.life, patience)
	defer cancel()
	for _, key := range c.keys {
		if err := c.next(ctx, key, 1); err != nil && w.life.Err() == nil {
			w.check.broken("liveness", "%v makes no progress %v after healing: %v", key, patience, err)
			return
		}
	}
	if err := c.tag(ctx, tagNames[0], 1); err != nil && w.life.Err() == nil {
		w.check.broken("liveness", "tag makes no progress %v after healing: %v", patience, err)
	}
}

func (w *world) result(faults []Fault) Result {
	calls := w.check.history.Calls()
	if w.opts.Beyond { // U holds without any clock, M does only in strict spaces
		for i := range calls {
			calls[i].Unordered = calls[i].Unordered || calls[i].Err == "" && !w.check.ordered(calls[i].Key)
		}
	}
	report := history.Check(calls)
	for _, v := range report.Violations {
		w.check.broken("history", "%s", v)
	}
	r := Result{Seed: w.opts.Seed, Virtual: w.now(), Stats: w.stats, Requests: report.Requests, Errors: report.Errors,
		Violations: w.check.violations(), Events: w.trace.lines}
	for _, f := range faults {
		r.Faults = append(r.Faults, f.String())
	}
	return r
}

// tempDir is a folder of one run.
func tempDir(base string) (string, error) { return os.MkdirTemp(base, "sim-") }

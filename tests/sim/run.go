package sim

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Options of one run. OptionsOf draws them from a seed.
type Options struct {
	Seed     uint64
	Engine   Engine
	Sets     int // clusters, each with so many Stores and Allocs, that divide the sections; 0 and 1: one
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
	Keep     time.Duration // of request ids in the exact space, at least
	Ahead    time.Duration // how far nodes have the marks of their worker ids confirmed
	Routers  int
	Fixed    bool // each node has a worker id of its own
	Beyond   bool // clocks run beyond rho: M is not promised then
	Care     bool // operators change the stores, back up and restore
	// Rehash has string keys hashed under new secrets now and then, and StoreClock has the wall
	// clock of one store wrong in runs with operators.
	Rehash, StoreClock bool
	Unbound            bool // the stores are bound first, by several at once, and some were made twice
	Clone              bool // in the end a store is copied, and a second process runs on the copy
	Torn               bool // stores have the real journal, on disks that lose what was not synced
	Streams            bool // stores have streams; else they are of a build of before
	Late               bool // a space is added while it runs, with operators and one cluster
	Scarce             bool // until all is healed, nodes have hardly any memory for counters, and fold them
	Trace              bool // keep the events; Result.Events reads them
	// If still is true, clocks run true, and nothing depends on chance. Scenarios set sectionsWanted.
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
	all := []seq.Space{
		{Name: seq.DefaultSpace, Sections: 4, Step: 20, Tickets: ticketLife},
		{Name: "strict", Sections: 1, Step: 15, Mode: seq.Strict, Tickets: ticketLife},
		{Name: "unique", Sections: 1, Step: 30, Mode: seq.UniqueOnly},
		{Name: exactSpace, Sections: 1, Mode: seq.Exact, Window: o.Keep, Tickets: ticketLife},
	}
	if o.Engine == EtcdEngine { // which keeps no exact ones
		all = all[:len(all)-1]
	}
	return all
}

func (o Options) sections() (n int) {
	for _, s := range o.spaces() {
		n += int(s.Sections)
	}
	return n
}

// OptionsOf draws a run.
func OptionsOf(seed uint64) Options {
	rng := rand.New(rand.NewPCG(seed, 0x0b7))
	o := Options{Seed: seed, Engine: StoreEngine, Stores: 3, Allocs: 3, Callers: 4, Length: 4 * time.Minute, Calm: 5 * time.Second,
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
	o.Keep = []time.Duration{20 * time.Second, seq.MaxWindow, seq.MaxWindow}[rng.IntN(3)]
	// Of a chance of their own, so that the rest of a seed is drawn as before.
	rng = rand.New(rand.NewPCG(seed, 0x5ea))
	if rng.IntN(6) == 0 {
		o.Stores = 4 // W is 3 and R is 2
	}
	o.Rehash, o.StoreClock = rng.IntN(3) == 0, rng.IntN(2) == 0
	o.Late = o.Care && rng.IntN(2) == 0
	rng = rand.New(rand.NewPCG(seed, 0xb17d))
	o.Unbound = rng.IntN(3) == 0
	rng = rand.New(rand.NewPCG(seed, 0x70a5))
	o.Torn = rng.IntN(3) == 0
	rng = rand.New(rand.NewPCG(seed, 0xc10f))
	o.Clone = rng.IntN(3) == 0
	rng = rand.New(rand.NewPCG(seed, 0x57e4))
	o.Streams = rng.IntN(3) > 0
	return o
}

// On is the run on that engine. On etcd, Stores are its members, and no operator changes them.
func (o Options) On(e Engine) Options {
	o.Engine = cmp.Or(e, StoreEngine)
	o.Care = o.Care && o.Engine != EtcdEngine
	o.Clone = o.Clone && o.Engine == StoreEngine && !o.Care
	o.Torn = o.Torn && o.Engine != EtcdEngine
	o.Late, o.Unbound = o.Late && o.Engine == StoreEngine, o.Unbound && o.Engine == StoreEngine
	if o.Engine == EtcdEngine && o.Stores%2 == 0 { // members of an etcd are odd in number
		o.Stores--
	}
	if o.Engine == SetsEngine {
		o.Sets, o.Calm = 2, 15*time.Second
	}
	return o
}

// Stats of one run.
type Stats struct {
	Events, Messages, Lost, Duplicated, Commits uint64
	Takeovers, Preempted, Handoffs, Steps       uint64
	Folded                                      uint64 // blocks of counters
	Torn                                        uint64 // power cuts that lost what was not synced
	Numbers, IDs                                uint64
	Lent                                        uint64 // IDs made by clients of what they were lent
	Faults                                      map[string]int
	Orders                                      map[string]int // carried out by operators
}

// Result of one run.
type Result struct {
	Seed       uint64
	Engine     Engine
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

// Run simulates one cluster. It must be called in a bubble of testing/synctest. Allocators keep the files
// of their own disks in dir.
func Run(o Options, dir string) Result {
	w := newWorld(o, dir)
	faults := o.Faults
	if faults == nil {
		faults = Schedule(o)
	}
	w.assemble()
	w.work.Go(w.loop)
	if o.Unbound && !w.back.(*onStores).bind() {
		w.conclude()
		return w.result(nil)
	}
	for _, one := range w.sets {
		one.back.begin()
		for _, h := range one.hosts.of(allocHost) {
			w.schedule(10*time.Millisecond, func() { one.procs.startAlloc(h) })
		}
	}
	for _, h := range w.hosts.of(routerHost) {
		w.schedule(20*time.Millisecond, func() { w.procs.startRouter(h) })
	}
	w.faults.arm(faults)
	w.drive()
	w.conclude()
	return w.result(faults)
}

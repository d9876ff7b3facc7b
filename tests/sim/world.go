package sim

import (
	"container/heap"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/api"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// world owns the network, the disks, the clocks and the faults of one run. Its loop is
// one goroutine that takes the events in the order of their times; whatever runs beside
// it is code that ships.
type world struct {
	opts  Options
	ident quorum.Identity
	begin time.Time // of virtual time
	dir   string    // for files of parked counters
	// limits of all nodes; nil: the defaults.
	limits *api.Limits

	life context.Context // ends with the run
	end  context.CancelFunc
	work sync.WaitGroup // goroutines of the simulator itself

	mu       sync.Mutex // guards all below, and what host says so of
	rng      *rand.Rand
	events   eventHeap
	count    uint64                             // events ever scheduled; orders those of one moment
	kick     chan struct{}                      // of one place: an event is earlier than what the loop waits for
	wakeAt   time.Duration                      // what the loop waits for; 0 while it does not wait
	hosts    []*host                            // in the order of their creation
	kinds    [hostKinds]atomic.Pointer[[]*host] // the same by kind; written under mu
	names    map[string]*methodName             // of methods ever called
	idle     []*hand                            // goroutines that wait for a message to handle
	over     bool                               // nothing is handled any more
	cuts     map[link]int                       // how many faults cut the direction now
	lags     map[*host]time.Duration            // of what stores say to a host
	late     map[link]time.Duration             // by which the prepares of a host reach a store later
	astray   map[*host]map[string]string        // where a host's messages to a name go
	bad      []weather                          // loss, duplication and delay in force
	armed    []*armedFault
	backups  []saved
	made     uint64 // learners so far; part of their uuids
	healed   bool
	seesaw   bool // one is played
	weathers int  // ever
	stats    Stats

	check *checker
	trace trace
}

// link is one direction between two hosts.
type link struct{ from, to string }

// weather is a time of bad network between all hosts.
type weather struct {
	id        int
	loss, dup float64
	slow      time.Duration
}

func newWorld(o Options, dir string) *world {
	w := &world{
		opts: o, begin: time.Now(), dir: dir, rng: rand.New(rand.NewPCG(o.Seed, 0x5e9)),
		kick: make(chan struct{}, 1), cuts: map[link]int{}, names: map[string]*methodName{}, lags: map[*host]time.Duration{}, late: map[link]time.Duration{}, astray: map[*host]map[string]string{},
	}
	if o.Scarce {
		w.limits = api.NewLimits(0, 0, scarce)
	}
	w.life, w.end = context.WithCancel(context.Background())
	w.check = newChecker(w)
	w.trace.on = o.Trace
	w.trace.begin = w.begin
	w.stats.Faults, w.stats.Orders = map[string]int{}, map[string]int{}
	return w
}

// scarce is enough bytes for the counters of three sections.
const scarce = 150

const never = time.Duration(1<<63 - 1)

// now is the true time since the begin of the run, which no host knows.
func (w *world) now() time.Duration { return time.Since(w.begin) }

// event is something that happens at a moment.
type event struct {
	at    time.Duration
	order uint64
	do    func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *eventHeap) Push(x any) { *h = append(*h, x.(event)) }

// Pop implements heap.Interface.
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}

// after schedules an event. Needs w.mu; the event runs without it.
func (w *world) after(d time.Duration, do func()) {
	at := w.now() + max(0, d)
	w.count++
	heap.Push(&w.events, event{at: at, order: w.count, do: do})
	if at < w.wakeAt {
		select {
		case w.kick <- struct{}{}:
		default:
		}
	}
}

// schedule is after for those who do not hold w.mu.
func (w *world) schedule(d time.Duration, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after(d, do)
}

// loop runs the events until the run ends.
func (w *world) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		w.mu.Lock()
		wait := never
		var due func()
		if len(w.events) > 0 {
			if wait = w.events[0].at - w.now(); wait <= 0 {
				due = heap.Pop(&w.events).(event).do
				w.stats.Events++
			}
		}
		switch {
		case due != nil:
			w.wakeAt = 0 // looks again before it waits
		case wait == never:
			w.wakeAt = never
		default:
			w.wakeAt = w.events[0].at
		}
		w.mu.Unlock()
		if due != nil {
			due()
			continue
		}
		if wait == never {
			wait = time.Hour
		}
		timer.Reset(wait)
		select {
		case <-w.life.Done():
			return
		case <-w.kick:
		case <-timer.C:
		}
	}
}

// host finds a host by name.
func (w *world) host(name string) *host {
	for _, h := range w.hosts {
		if h.name == name {
			return h
		}
	}
	return nil
}

// of are the hosts of a kind; the slice is not to be changed.
func (w *world) of(kind hostKind) []*host {
	if all := w.kinds[kind].Load(); all != nil {
		return *all
	}
	return nil
}

// hand is a goroutine that handles one message after the other: a stack that has grown is
// worth keeping.
type hand struct{ tasks chan func() }

// do has a hand do a task. Needs w.mu.
func (w *world) do(task func()) {
	var h *hand
	if last := len(w.idle) - 1; last >= 0 {
		h, w.idle = w.idle[last], w.idle[:last]
	} else {
		h = &hand{make(chan func(), 1)}
		w.work.Go(func() { w.lend(h) })
	}
	h.tasks <- task
}

// lend does tasks until the run is over.
func (w *world) lend(h *hand) {
	for task := range h.tasks {
		task()
		w.mu.Lock()
		if w.over {
			w.mu.Unlock()
			return
		}
		w.idle = append(w.idle, h)
		w.mu.Unlock()
	}
}

// dismiss lets all hands go, those at work when they are done. Needs w.mu.
func (w *world) dismiss() {
	w.over = true
	for _, h := range w.idle {
		close(h.tasks)
	}
	w.idle = nil
}

// chance is true with probability p. Needs w.mu.
func (w *world) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }

// between is a moment in [lo, hi). Needs w.mu.
func (w *world) between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(w.rng.Int64N(int64(hi-lo)))
}

// sleep waits for d of true time; false when the run has ended.
func (w *world) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.life.Done():
		return false
	case <-timer.C:
		return true
	}
}

// newSecret draws an incarnation. Needs w.mu.
func (w *world) newSecret(h *host) (s seq.Secret) {
	v := w.rng.Uint64()
	if w.opts.still {
		v = uint64(1000*h.life + h.index + 1)
	}
	binary.BigEndian.PutUint64(s[:], v)
	return s
}

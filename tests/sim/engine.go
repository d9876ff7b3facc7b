package sim

import (
	"container/heap"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// engine has what all parts of a run share: the events in the order of their times, which one goroutine
// takes; chance; the lock; and the simulator's own goroutines. All other goroutines run code that ships.
type engine struct {
	opts  Options
	begin time.Time // of virtual time
	trace trace

	life context.Context // ends with the run
	end  context.CancelFunc
	work sync.WaitGroup // goroutines of the simulator itself

	mu     sync.Mutex // guards all below, the parts of the world, and what host says so of
	rng    *rand.Rand
	events eventHeap
	count  uint64        // events ever scheduled; orders events of one moment
	kick   chan struct{} // of one place: an event is earlier than what the loop waits for
	wakeAt time.Duration // what the loop waits for; 0 while it does not wait
	idle   []*hand       // goroutines that wait for a message to handle
	over   bool          // nothing is handled any more
	stats  Stats
}

const never = time.Duration(1<<63 - 1)

// now is the true time since the begin of the run, which no host knows.
func (e *engine) now() time.Duration { return time.Since(e.begin) }

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

// after schedules an event. Needs e.mu; the event runs without it.
func (e *engine) after(d time.Duration, do func()) {
	at := e.now() + max(0, d)
	e.count++
	heap.Push(&e.events, event{at: at, order: e.count, do: do})
	if at < e.wakeAt {
		select {
		case e.kick <- struct{}{}:
		default:
		}
	}
}

// locked is do under e.mu.
func (e *engine) locked(do func()) func() {
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		do()
	}
}

// schedule calls after for callers that do not hold e.mu.
func (e *engine) schedule(d time.Duration, do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.after(d, do)
}

// loop runs the events until the run ends.
func (e *engine) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		e.mu.Lock()
		wait := never
		var due func()
		if len(e.events) > 0 {
			if wait = e.events[0].at - e.now(); wait <= 0 {
				due = heap.Pop(&e.events).(event).do
				e.stats.Events++
			}
		}
		switch {
		case due != nil:
			e.wakeAt = 0 // looks again before it waits
		case wait == never:
			e.wakeAt = never
		default:
			e.wakeAt = e.events[0].at
		}
		e.mu.Unlock()
		if due != nil {
			due()
			continue
		}
		if wait == never {
			wait = time.Hour
		}
		timer.Reset(wait)
		select {
		case <-e.life.Done():
			return
		case <-e.kick:
		case <-timer.C:
		}
	}
}

// hand is a goroutine that handles one message after the other: a stack that has grown is
// worth keeping.
type hand struct{ tasks chan func() }

// do has a hand do a task. Needs e.mu.
func (e *engine) do(task func()) {
	var h *hand
	if last := len(e.idle) - 1; last >= 0 {
		h, e.idle = e.idle[last], e.idle[:last]
	} else {
		h = &hand{make(chan func(), 1)}
		e.work.Go(func() { e.lend(h) })
	}
	h.tasks <- task
}

// lend does tasks until the run is over.
func (e *engine) lend(h *hand) {
	for task := range h.tasks {
		task()
		e.mu.Lock()
		if e.over {
			e.mu.Unlock()
			return
		}
		e.idle = append(e.idle, h)
		e.mu.Unlock()
	}
}

// dismiss lets all hands go, those at work when they are done. Needs e.mu.
func (e *engine) dismiss() {
	e.over = true
	for _, h := range e.idle {
		close(h.tasks)
	}
	e.idle = nil
}

// chance is true with probability p. Needs e.mu.
func (e *engine) chance(p float64) bool { return p > 0 && e.rng.Float64() < p }

// between is a moment in [lo, hi). Needs e.mu.
func (e *engine) between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(e.rng.Int64N(int64(hi-lo)))
}

// sleep waits for d of true time; false when the run has ended.
func (e *engine) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-e.life.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (e *engine) later(d time.Duration, do func()) { e.schedule(max(d, time.Millisecond), do) }

// logger takes a host's log into the trace.
func (e *engine) logger(host string) *slog.Logger {
	if !e.opts.Trace {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(keeper{t: &e.trace, host: host})
}

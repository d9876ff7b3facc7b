package globalid

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/tenure"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// lease is one worker id under one epoch of this session, from its first confirmed
// mark to its loss or release.
//
//	floor < tick of each ID from gen <= confirmed.tick(layout)
//	W stores have the register's max at or above confirmed
type lease struct {
	issuer     *issuer
	ns         Namespace // as it was recorded when the lease was acquired
	layout     string    // preset or text, for replies
	datacenter snowflake.Datacenter
	worker     snowflake.Worker
	register   seq.Register
	round      uint64
	floor      snowflake.Tick
	gen        *snowflake.Generator

	confirmed atomic.Uint64 // a mark; written by who acquires, then by the keeper only

	// asked is the highest mark whose step has an unknown outcome, 0 for none: the
	// next step asks for as much. retryAt is when a failed step may be repeated, on
	// the clock. Both are the keeper's.
	asked   mark
	retryAt time.Duration

	// trouble is why the last step failed for good, nil if it did not. Each failure
	// is a new pointer, so that waiters can tell it from one before their time.
	trouble atomic.Pointer[trouble]

	mu   sync.Mutex  // guards hold and over
	hold tenure.Hold // nil until it is attached
	over bool        // given up: a hold that comes later is dropped at once
}

type trouble struct {
	err   error
	until time.Duration // on the clock: no other step is tried before
}

func (l *lease) mark() mark { return mark(l.confirmed.Load()) }

// last is the highest moment that an ID of the lease may carry so far.
func (l *lease) last() mark { return startOf(l.ns.Layout, l.gen.Last()) }

// confirm lets the generator use the window up to a mark that W stores have.
func (l *lease) confirm(m mark) {
	l.confirmed.Store(uint64(m))
	l.gen.Extend(m.tick(l.ns.Layout))
}

// attached keeps the hold for drop.
func (l *lease) attached(h tenure.Hold) {
	l.mu.Lock()
	l.hold = h
	over := l.over
	l.mu.Unlock()
	if over {
		h.Drop()
	}
}

func (l *lease) drop() {
	l.mu.Lock()
	l.over = true
	h := l.hold
	l.mu.Unlock()
	if h != nil {
		h.Drop()
	}
}

// issuer is one namespace at this node: at most one lease at a time.
type issuer struct {
	name    string
	current atomic.Pointer[lease] // nil: none
	issued  atomic.Uint64         // IDs handed out since start
	// delegated counts the windows given to clients since start.
	delegated atomic.Uint64
	used      atomic.Int64 // when it was last asked, on the clock; 0: never

	mu      sync.Mutex // guards all below
	pending *pending   // an acquisition under way
	failed  error      // of the last one, given to all who ask before retryAt
	retryAt time.Duration
	first   *snowflake.Worker // of an acquisition that failed after its promise
	pool    pool              // as it was last seen; size 0: never
	warned  time.Duration     // when the end of the layout was last warned of; 0: never
}

// pending is an acquisition that others may wait for.
type pending struct {
	done chan struct{} // closed once err is set
	err  error
}

// prefer sets the worker id that the next acquisition tries first, nil for none.
func (i *issuer) prefer(w *snowflake.Worker) {
	i.mu.Lock()
	i.first = w
	i.mu.Unlock()
}

// idleAfter is how long a namespace is kept ready after its last request. Then its
// window is no longer extended: the next request waits for one write.
const idleAfter = time.Minute

func (i *issuer) touch(now time.Duration) {
	// Coarse, so that callers do not fight for the cache line.
	if was := i.used.Load(); was == 0 || now-time.Duration(was) > idleAfter/16 {
		i.used.Store(max(1, int64(now)))
	}
}

func (i *issuer) wanted(now time.Duration) bool {
	used := i.used.Load()
	return used != 0 && now-time.Duration(used) < idleAfter
}

package history

import (
	"fmt"
	"sync"
	"time"
)

// MaxNumber is the largest sequence there can be, 2^53-1.
const MaxNumber = 1<<53 - 1

// Key names one counter.
type Key struct {
	Space string
	UID   uint64
}

// String is space/uid, or the uid alone in the default space.
func (k Key) String() string {
	if k.Space == "" {
		return fmt.Sprint(k.UID)
	}
	return fmt.Sprintf("%s/%d", k.Space, k.UID)
}

// Call is one request for numbers of one key, and what came of it.
//
//	Err == ""  =>  1 <= First <= Last <= MaxNumber
//	Err != ""  =>  First == Last == 0
//	Start <= End
type Call struct {
	Key
	First uint64 // both ends belong to the range
	Last  uint64
	// Start was read before the request was sent, End after its answer had come.
	// Both are nanoseconds of the one monotonic clock of the history.
	Start time.Duration
	End   time.Duration
	// Client tells apart who called; it matters to people and to Recorder only.
	Client int
	// Err is why the call failed. It is empty if and only if it succeeded.
	Err string
	// ID is the request id in a space of mode=exact, or empty. Calls of one key and ID are one request that
	// was repeated.
	ID       string
	Sent     int  // how often its caller sent it in this call; 0 and 1: once
	Replayed bool // the answer says that the request had its numbers before
	// Unordered says that the answer was flagged as unique only: M does not hold
	// for it, U does.
	Unordered bool
}

// String is the call in one line, for reports.
func (c Call) String() string {
	outcome := fmt.Sprintf("%d-%d", c.First, c.Last)
	if c.Err != "" {
		outcome = "error " + c.Err
	}
	if c.Unordered {
		outcome += " unordered"
	}
	if c.Replayed {
		outcome += " replayed"
	}
	if c.ID != "" {
		outcome = fmt.Sprintf("id %q: %s", c.ID, outcome)
	}
	return fmt.Sprintf("client %d, key %v, [%v, %v]: %s", c.Client, c.Key, c.Start, c.End, outcome)
}

func (c Call) valid() bool {
	if c.End < c.Start {
		return false
	}
	if c.Err != "" {
		return c.First == 0 && c.Last == 0
	}
	return 1 <= c.First && c.First <= c.Last && c.Last <= MaxNumber
}

// shards is enough that the clients of a load test seldom meet at one lock.
const shards = 64

// Recorder collects calls in memory. The zero value is empty and ready. It is
// safe for concurrent use; clients with different numbers mostly do not wait
// for each other. It must not be copied.
type Recorder struct {
	shards [shards]shard
}

type shard struct {
	mu    sync.Mutex // guards calls
	calls []Call
	_     [32]byte // a cache line of its own, so that clients do not slow each other down
}

// Add records one call.
func (r *Recorder) Add(c Call) {
	s := &r.shards[uint(c.Client)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

// Calls returns a copy of what was recorded until now, in no particular order.
func (r *Recorder) Calls() []Call {
	var out []Call
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		out = append(out, s.calls...)
		s.mu.Unlock()
	}
	return out
}

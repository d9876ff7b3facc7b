package gate

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// Bounds of the memory that the callers of one server take, in bytes.
const (
	// memoryBudget bounds the messages and calls of all connections. The largest message of a store fits.
	memoryBudget = 32 << 20
	// strangersBudget is the part of it for connections that have not shown who they are, of a
	// server that asks everybody.
	strangersBudget = memoryBudget / 4
	// controlBudget is beyond it, for the calls by which a cluster lives and is looked at.
	controlBudget = 4 << 20
	// piece is what a connection draws of the budget at once, so that connections seldom meet.
	piece = 64 << 10
	// freely is what each connection may hold without drawing: its place costs more.
	freely = 4 << 10
)

// errMemory refuses a call, or closes the connection that asks for too much.
var errMemory = fmt.Errorf("%w: messages that are not handled fill the memory for them", seq.ErrOverloaded)

// account is the memory that the callers of one server take. Connections draw pieces of it. If it
// is spent, what they drew and no longer need is taken back, and then the connection with the most
// unfinished bytes is closed: a caller that finishes its messages has nearly none, however many
// calls it has in progress. Safe for concurrent use.
type account struct {
	budget, strangers int64

	mu      sync.Mutex // guards all below
	used    int64      // drawn by all
	strange int64      // drawn by strangers
	holders map[*traffic]*holding
}

// holding is what one connection has drawn.
type holding struct {
	bytes   int64
	strange bool
}

func newAccount(budget, strangers int64) *account {
	return &account{budget: budget, strangers: strangers, holders: map[*traffic]*holding{}}
}

// draw has t hold enough pieces for all that it has in memory. Control calls may go beyond the
// budget by their share. errMemory if no other connection could be closed for it.
func (a *account) draw(t *traffic, control bool) error {
	closed, err := a.make(t, control)
	for _, other := range closed {
		other.drop(rpc.RefusedUnfinished)
	}
	return err
}

// make is draw, and returns the connections that are to be closed for it.
func (a *account) make(t *traffic, control bool) (closed []*traffic, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.holders[t]
	if h == nil {
		h = &holding{strange: t.stranger.Load()}
		a.holders[t] = h
	}
	for swept := false; ; swept = true {
		a.settle(t, h)
		more := pieces(t.held()) - h.bytes
		short, strange := a.short(h, more, control)
		if more <= 0 || !short {
			a.add(t, h, max(more, 0))
			break
		}
		if !swept {
			a.sweep()
			continue
		}
		other := a.worst(strange)
		if other == nil || other == t {
			err = errMemory
			break
		}
		a.forget(other)
		closed = append(closed, other)
	}
	if h.bytes == 0 || t.closed.Load() {
		a.forget(t)
	}
	return closed, err
}

// short reports whether there is not so much more for h, and whether only strangers lack it.
func (a *account) short(h *holding, more int64, control bool) (short, strange bool) {
	if h.strange && a.strange+more > a.strangers {
		return true, true
	}
	if control && !h.strange {
		return a.used+more > a.budget+controlBudget, false
	}
	return a.used+more > a.budget, false
}

// pieces rounds n up to whole pieces.
func pieces(n int64) int64 { return (n + piece - 1) / piece * piece }

// settle notes that a connection has shown who it is.
func (a *account) settle(t *traffic, h *holding) {
	if h.strange && !t.stranger.Load() {
		h.strange = false
		a.strange -= h.bytes
	}
}

func (a *account) add(t *traffic, h *holding, n int64) {
	h.bytes += n
	a.used += n
	if h.strange {
		a.strange += n
	}
	t.drawn.Store(h.bytes)
}

// sweep takes back what connections drew and do not need now.
func (a *account) sweep() {
	for t, h := range a.holders {
		a.settle(t, h)
		if spare := h.bytes - pieces(t.held()); spare > 0 {
			a.add(t, h, -spare)
		}
	}
}

// worst returns the connection with the most unfinished bytes, of strangers alone or of all. It
// returns nil if none has more than what is free.
func (a *account) worst(strangers bool) (worst *traffic) {
	most := int64(freely)
	for t, h := range a.holders {
		if n := t.unfinished.Load(); n > most && (h.strange || !strangers) {
			worst, most = t, n
		}
	}
	return worst
}

// forget gives back all of a connection that is closed, or is about to be.
func (a *account) forget(t *traffic) {
	if h := a.holders[t]; h != nil {
		a.add(t, h, -h.bytes)
		delete(a.holders, t)
	}
}

// leave is forget for a connection that has closed.
func (a *account) leave(t *traffic) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(t)
}

// memory is what one connection holds of the account.
type memory struct {
	account    *account
	stranger   atomic.Bool  // it must show who it is, and has not
	unfinished atomic.Int64 // bytes of messages that have not come whole, and the cost of their calls
	work       atomic.Int64 // bytes of messages in handlers, and the cost of their calls
	drawn      atomic.Int64 // of the account
	calls      atomic.Int64 // in progress
	heard      atomic.Bool  // a message has come whole lately
}

func (m *memory) held() int64 { return m.unfinished.Load() + m.work.Load() }

package gate

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// CallCost is what one call in work weighs beside its keys, in keys: a goroutine and
// what gRPC keeps for it.
const CallCost = 64

// MinInWork is the least limit of a server of batches, in keys: the largest batch alone
// must fit, or it never will.
const MinInWork = seq.MaxBatch + CallCost

// CheckMaxInWork: seq.ErrBadArgument for a limit of keys in work, other than 0, into which
// the largest batch would never fit.
func CheckMaxInWork(keys int) error {
	if keys != 0 && keys < MinInWork {
		return fmt.Errorf("%w: at most %d keys in work, expected 0 (the default) or at least %d", seq.ErrBadArgument, keys, MinInWork)
	}
	return nil
}

// Admission bounds the work that a server has begun and not ended, in keys. So overload ends in refusals
// and not in memory, and no caller takes it all. While it is half full, every call is let in. Above that,
// no caller gets more than its share: the limit divided by the number of callers with calls in work. The
// last eighth is for callers that have no calls in work, so that a late caller finds room.
//
// Of the calls that are let in, a few begin at a time. The others wait for their turns.
//
// Calls for one of several Sets have half of the limit, in which each caller has its share in the same way.
// So calls that wait for a dead Set take nothing from calls for other Sets.
//
// Safe for concurrent use.
type Admission struct {
	nameOf  func(set int) string
	refused atomic.Uint64

	mu      sync.Mutex // guards all below
	bound   bound
	inWork  int64          // <= limit, but after it was lowered
	callers map[any]*share // those with calls
	waiting int            // of callers, those with calls in line
	sets    map[int]*pool  // those with calls in work
	turns
}

// bound is a limit, with what is said beyond it: an overload is no time to make texts.
type bound struct {
	limit        int64
	full, shared error
}

// share is what one caller has in work.
type share struct {
	who           any
	calls, waits  int // waits counts the calls in line
	inWork, begun int64
	setless       int64 // of inWork, what is for no Set
}

// Place is the place of one call in work. Its owner leaves it once.
type Place struct {
	in    *Admission
	of    *share
	cost  int64         // of its work, in keys
	held  int64         // of inWork
	sets  []forSet      // that it is for
	since time.Time     // when it began
	begun bool          // counts as begun lately
	due   int64         // by the clock of turns
	at    int           // in the line
	turn  chan struct{} // closed when the call begins; nil if it began at once
}

// NewAdmission makes one of a limit in keys. A call alone must fit, or it never will:
// MinInWork at least for a server of batches.
func NewAdmission(limit int) *Admission {
	a := &Admission{nameOf: strconv.Itoa, callers: map[any]*share{}, sets: map[int]*pool{},
		turns: turns{room: int64(turnKeys * runtime.GOMAXPROCS(0)), paid: map[any]int64{}, sweep: minSweep}}
	a.look = time.AfterFunc(time.Hour, a.again)
	a.look.Stop()
	a.SetLimit(limit)
	return a
}

// SetLimit changes the limit, in keys. No call that is in is sent away: a lower limit holds
// as soon as enough of them have left.
func (a *Admission) SetLimit(limit int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bound = bound{
		limit:  int64(limit),
		full:   fmt.Errorf("%w: %d keys are in work", seq.ErrOverloaded, limit),
		shared: fmt.Errorf("%w: more than half of the %d keys that may be in work are, and this caller has its share", seq.ErrOverloaded, limit),
	}
}

// callerKey is the key of a context's value.
type callerKey struct{}

// WithCaller names the caller of the calls with the context: any value that can be compared and
// is the same for all of its calls.
func WithCaller(ctx context.Context, who any) context.Context {
	return context.WithValue(ctx, callerKey{}, who)
}

// callerOf is what WithCaller said, else the connection; nil for neither.
func callerOf(ctx context.Context) any {
	if who := ctx.Value(callerKey{}); who != nil {
		return who
	}
	if t := trafficOf(ctx); t != nil {
		return t
	}
	return nil
}

// Enter begins a call of so many keys when its caller's turn comes. Leave must follow. If there are several
// Sets in all, sets names the Sets of the call, and the call may go on with those that Place.Refused does
// not name. Enter returns seq.ErrOverloaded at once, to retry later, or the error of ctx.
func (a *Admission) Enter(ctx context.Context, keys int, sets ...int) (*Place, error) {
	p, err := a.enter(callerOf(ctx), keys, sets, true)
	if err != nil {
		return nil, err
	}
	return p.wait(ctx)
}

// Try is Enter without the wait for a turn, for callers that take turns in another way.
func (a *Admission) Try(ctx context.Context, keys int, sets ...int) (*Place, error) {
	return a.enter(callerOf(ctx), keys, sets, false)
}

func (a *Admission) enter(who any, keys int, sets []int, turns bool) (*Place, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.place(who, keys)
	if err := a.refusal(p, sets); err != nil {
		a.refused.Add(1)
		return nil, err
	}
	a.add(p)
	p.held = p.cost
	a.inWork += p.held
	p.of.inWork += p.held
	if len(sets) == 0 {
		p.of.setless += p.held
	}
	if turns {
		a.queue(p)
	}
	return p, nil
}

// place returns a place that does not count yet. Needs mu.
func (a *Admission) place(who any, keys int) *Place {
	of := a.callers[who]
	if of == nil {
		of = &share{who: who}
	}
	return &Place{in: a, of: of, cost: int64(keys + CallCost)}
}

// add counts a call of its caller. Needs mu.
func (a *Admission) add(p *Place) {
	a.callers[p.of.who] = p.of
	p.of.calls++
}

// refusal returns why a call does not fit into memory. If it returns nil, the call has its places at its
// Sets. Needs mu.
func (a *Admission) refusal(p *Place, sets []int) error {
	own := p.of.setless
	switch sum := a.inWork + p.cost; {
	case sum > a.bound.limit:
		return a.bound.full
	case len(sets) > 0:
		return a.enterSets(p, sets)
	case own > 0 && !below(sum, own+p.cost, a.bound.limit, a.sharers(p.of)):
		return a.bound.shared
	}
	return nil
}

// below says whether a caller that has some already may have more: sum of all, and own of that.
func below(sum, own, limit, sharers int64) bool {
	return sum <= limit/2 || sum <= limit-limit/8 && own <= limit/sharers
}

// sharers returns the number of callers, including this one. Needs mu.
func (a *Admission) sharers(of *share) int64 {
	n := int64(len(a.callers))
	if of.calls == 0 {
		n++
	}
	return n
}

// Leave ends a call that was let in.
func (p *Place) Leave() {
	a := p.in
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unbegin(p)
	a.inWork -= p.held
	p.of.inWork -= p.held
	if len(p.sets) == 0 {
		p.of.setless -= p.held
	}
	for i := range p.sets {
		a.leaveSet(p, &p.sets[i])
	}
	if p.turn != nil && p.since.IsZero() {
		a.unwait(p)
	}
	if p.of.calls--; p.of.calls == 0 {
		delete(a.callers, p.of.who)
	}
	switch {
	case len(a.line) > 0:
		a.next(time.Now())
	case len(a.callers) == 0:
		clear(a.paid) // no caller waited for another
	}
}

// InWork returns the weight of the calls in work, in keys. It includes calls that wait for their turn.
func (a *Admission) InWork() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inWork
}

// Limit returns the limit of InWork, in keys.
func (a *Admission) Limit() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bound.limit
}

// Refused returns the number of calls that Enter has refused.
func (a *Admission) Refused() uint64 { return a.refused.Load() }

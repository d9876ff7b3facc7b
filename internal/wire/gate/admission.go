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

const (
	// turnKeys bounds the work that began lately, in keys for each processor. It takes a few milliseconds.
	turnKeys = 1 << 14
	// turnTime is the time for which a call that has begun is assumed to need a processor. A longer call
	// waits for something else, such as a section that moves.
	turnTime = 20 * time.Millisecond
	// maxLooks bounds the callers that are looked at for the next turn.
	maxLooks = 8
)

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
// The same holds for the work that was begun in the last turnTime, except that a call beyond it waits for
// its turn. Callers take turns. So a caller that asks for little meets little work before its own.
//
// Calls for one of several Sets have half of the limit, in which each caller has its share in the same way.
// So calls that wait for a dead Set take nothing from calls for other Sets.
//
// Safe for concurrent use.
type Admission struct {
	turn    int64 // of work that begins, in keys
	nameOf  func(set int) string
	refused atomic.Uint64

	mu      sync.Mutex // guards all below
	bound   bound
	inWork  int64          // <= limit, but after it was lowered
	begun   int64          // of inWork, what began lately
	callers map[any]*share // those with calls in work
	sets    map[int]*pool  // those with calls in work
	turns   []*Place       // that began lately, the oldest first, and some that have left
	line    []*share       // those with calls that wait, the next one first
	look    *time.Timer    // runs while a call is in line
	looking bool
}

// bound is a limit, with what is said beyond it: an overload is no time to make texts.
type bound struct {
	limit        int64
	full, shared error
}

// share is what one caller has in work.
type share struct {
	who           any
	inWork, begun int64
	setless       int64 // of inWork, what is for no Set
	waiting       []*Place
}

// Place is the place of one call in work. Its owner leaves it once.
type Place struct {
	in    *Admission
	of    *share
	cost  int64
	sets  []forSet      // that it is for
	at    time.Time     // when it began
	begun bool          // counts as begun lately
	turn  chan struct{} // closed when the call begins; nil if it began at once
}

// NewAdmission makes one of a limit in keys. A call alone must fit, or it never will:
// MinInWork at least for a server of batches.
func NewAdmission(limit int) *Admission {
	a := &Admission{turn: int64(turnKeys * runtime.GOMAXPROCS(0)), nameOf: strconv.Itoa, callers: map[any]*share{}, sets: map[int]*pool{}}
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
	if err != nil || p.turn == nil {
		return p, err
	}
	select {
	case <-p.turn:
		return p, nil
	case <-ctx.Done():
		p.Leave()
		return nil, ctx.Err()
	}
}

// Try is Enter without the wait for a turn, for callers that take turns in another way.
func (a *Admission) Try(ctx context.Context, keys int, sets ...int) (*Place, error) {
	return a.enter(callerOf(ctx), keys, sets, false)
}

func (a *Admission) enter(who any, keys int, sets []int, turns bool) (*Place, error) {
	cost := int64(keys + CallCost)
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.callers[who]
	if of == nil {
		of = &share{who: who}
	}
	p := &Place{in: a, of: of, cost: cost}
	if err := a.refusal(p, sets); err != nil {
		a.refused.Add(1)
		return nil, err
	}
	a.callers[who] = of
	a.inWork += cost
	of.inWork += cost
	if len(sets) == 0 {
		of.setless += cost
	}
	if !turns {
		return p, nil
	}
	now := time.Now()
	a.age(now)
	if len(of.waiting) == 0 && a.fits(of, cost) {
		a.begin(p, now)
		return p, nil
	}
	p.turn = make(chan struct{})
	if of.waiting = append(of.waiting, p); len(of.waiting) == 1 {
		a.line = append(a.line, of)
	}
	a.lookAgain()
	return p, nil
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

// fits says whether a call of the caller may begin. Needs mu.
func (a *Admission) fits(of *share, cost int64) bool {
	sum := a.begun + cost
	return a.begun == 0 || of.begun == 0 && sum <= a.turn || below(sum, of.begun+cost, a.turn, a.sharers(of))
}

// below says whether a caller that has some already may have more: sum of all, and own of that.
func below(sum, own, limit, sharers int64) bool {
	return sum <= limit/2 || sum <= limit-limit/8 && own <= limit/sharers
}

// sharers returns the number of callers, including this one. Needs mu.
func (a *Admission) sharers(of *share) int64 {
	n := int64(len(a.callers))
	if of.inWork == 0 {
		n++
	}
	return n
}

// begin notes that a call begins. Needs mu.
func (a *Admission) begin(p *Place, now time.Time) {
	p.at, p.begun = now, true
	a.begun += p.cost
	p.of.begun += p.cost
	a.turns = append(a.turns, p)
}

// age forgets what has begun long ago, or has left. Needs mu.
func (a *Admission) age(now time.Time) {
	n := 0
	for ; n < len(a.turns); n++ {
		p := a.turns[n]
		if p.begun && now.Sub(p.at) < turnTime {
			break
		}
		a.unbegin(p)
		a.turns[n] = nil
	}
	if a.turns = a.turns[n:]; len(a.turns) == 0 {
		a.turns = nil
	}
}

// unbegin no longer counts the call as begun lately. Needs mu.
func (a *Admission) unbegin(p *Place) {
	if p.begun {
		p.begun = false
		a.begun -= p.cost
		p.of.begun -= p.cost
	}
}

// Leave ends a call that was let in.
func (p *Place) Leave() {
	a := p.in
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unbegin(p)
	a.inWork -= p.cost
	if len(p.sets) == 0 {
		p.of.setless -= p.cost
	}
	for i := range p.sets {
		a.leaveSet(p, &p.sets[i])
	}
	if p.of.inWork -= p.cost; p.of.inWork == 0 {
		delete(a.callers, p.of.who)
	}
	if p.turn != nil && p.at.IsZero() {
		a.unwait(p)
	}
	if len(a.line) > 0 {
		a.next(time.Now())
	}
}

// unwait takes a call from those that wait. Needs mu.
func (a *Admission) unwait(p *Place) {
	p.of.waiting = without(p.of.waiting, p)
	if len(p.of.waiting) == 0 {
		a.line = without(a.line, p.of)
	}
}

// without is the list without one of it.
func without[T comparable](list []T, one T) []T {
	for i, v := range list {
		if v == one {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// next lets calls begin whose turn it is. Needs mu.
func (a *Admission) next(now time.Time) {
	a.age(now)
	for looked := 0; looked < min(maxLooks, len(a.line)); {
		of := a.line[0]
		a.line = a.line[1:]
		p := of.waiting[0]
		if !a.fits(of, p.cost) {
			a.line = append(a.line, of)
			looked++
			continue
		}
		if of.waiting = of.waiting[1:]; len(of.waiting) > 0 {
			a.line = append(a.line, of)
		}
		a.begin(p, now)
		close(p.turn)
		looked = 0
	}
	a.lookAgain()
}

// lookAgain makes sure that those in line are looked at once what is before them is no
// longer new. Needs mu.
func (a *Admission) lookAgain() {
	if len(a.line) > 0 && !a.looking {
		a.looking = true
		a.look.Reset(turnTime)
	}
}

// again looks at those in line after a while without a call that left.
func (a *Admission) again() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looking = false
	a.next(time.Now())
}

// InWork returns the weight of the calls in work, in keys. It includes calls that wait for their turn.
func (a *Admission) InWork() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inWork
}

// Waiting returns the number of callers that have calls waiting for their turn.
func (a *Admission) Waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.line)
}

// Limit returns the limit of InWork, in keys.
func (a *Admission) Limit() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bound.limit
}

// Refused returns the number of calls that Enter has refused.
func (a *Admission) Refused() uint64 { return a.refused.Load() }

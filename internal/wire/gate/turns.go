package gate

import (
	"container/heap"
	"context"
	"runtime"
	"time"
)

const (
	// turnKeys bounds the work that began lately, in keys for each processor. It takes about a
	// millisecond.
	turnKeys = 1 << 12
	// turnTime is the time for which a call that has begun is assumed to need a processor. A longer call
	// waits for something else, such as a section that moves.
	turnTime = 10 * time.Millisecond
	// turnRounds counts the turns that all other goroutines that can run get before that.
	turnRounds = 4
)

// turns queues calls fairly for the processors. Needs the lock of its Admission.
//
// Each caller with calls gets the same share of the work that begins, in keys. The clock counts what
// one share has been since the start. A call is due at the time of the clock at which the share of
// its caller has paid for it and for the earlier calls of that caller, and the call that is due
// first begins first. So a caller that asks for less than its share waits for no queue of others,
// and a large call waits longer than a small one.
type turns struct {
	room  int64 // of work that has begun, in keys
	begun int64 // of room: each call counts for a half of turnKeys at most, so that two large ones begin for each processor

	recent []*Place      // that began lately, the oldest first, and some that have left
	clock  int64         // in keys
	paid   map[any]int64 // by caller, when its last call was due
	sweep  int           // entries of paid at which the old ones go
	line   line

	look    *time.Timer // runs while a call is in line
	looking bool
}

// minSweep is the number of entries of turns.paid below which none is looked for that is past.
const minSweep = 1 << 10

// line is a heap of the calls that wait, by the time at which they are due.
type line []*Place

func (l line) Len() int           { return len(l) }
func (l line) Less(i, j int) bool { return l[i].due < l[j].due }
func (l line) Swap(i, j int)      { l[i], l[j] = l[j], l[i]; l[i].at, l[j].at = i, j }

// Push implements heap.Interface.
func (l *line) Push(p any) {
	p.(*Place).at = len(*l)
	*l = append(*l, p.(*Place))
}

// Pop implements heap.Interface.
func (l *line) Pop() any {
	last := len(*l) - 1
	p := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return p
}

// take begins a piece of work of so many keys when it is its caller's turn; Leave must follow. It
// takes none of the limit and is never refused. It returns the error of ctx.
func (a *Admission) take(ctx context.Context, who any, keys int) (*Place, error) {
	a.mu.Lock()
	p := a.place(who, keys)
	a.add(p)
	a.queue(p)
	a.mu.Unlock()
	return p.wait(ctx)
}

// wait waits for the turn of a call.
func (p *Place) wait(ctx context.Context) (*Place, error) {
	if p.turn == nil {
		return p, nil
	}
	select {
	case <-p.turn:
		return p, nil
	case <-ctx.Done():
		p.Leave()
		return nil, ctx.Err()
	}
}

// queue has the call begin, at once or when it is due. Needs mu.
func (a *Admission) queue(p *Place) {
	who, now := p.of.who, time.Now()
	p.due = max(a.clock, a.paid[who]) + p.cost
	a.pay(who, p.due)
	a.age(time.Time{})
	if len(a.line) == 0 && a.fits(p) {
		a.begin(p, now)
		return
	}
	p.turn = make(chan struct{})
	if p.of.waits++; p.of.waits == 1 {
		a.waiting++
	}
	heap.Push(&a.line, p)
	a.next(now)
}

// pay notes when the last call of a caller is due. Times that are past change nothing and go,
// once there are many. Needs mu.
func (a *Admission) pay(who any, due int64) {
	a.paid[who] = due
	if len(a.paid) < a.sweep {
		return
	}
	for who, due := range a.paid {
		if due <= a.clock {
			delete(a.paid, who)
		}
	}
	a.sweep = max(minSweep, 2*len(a.paid))
}

// weight returns what the call counts for among the work that has begun.
func weight(p *Place) int64 { return min(p.cost, turnKeys/2) }

// fits reports whether a call may begin. An eighth is left for callers of which none has begun.
// Needs mu.
func (a *Admission) fits(p *Place) bool {
	sum := a.begun + weight(p)
	return a.begun == 0 || sum <= a.room || p.of.begun == 0 && sum <= a.room+a.room/8
}

// begin notes that a call begins. Needs mu.
func (a *Admission) begin(p *Place, now time.Time) {
	p.since, p.begun = now, true
	a.begun += weight(p)
	p.of.begun += weight(p)
	a.recent = append(a.recent, p)
	a.clock += max(1, p.cost/int64(len(a.callers)))
}

// age forgets what began at a time or earlier, or has left. Needs mu.
func (a *Admission) age(before time.Time) {
	n := 0
	for ; n < len(a.recent); n++ {
		p := a.recent[n]
		if p.begun && p.since.After(before) {
			break
		}
		a.unbegin(p)
		a.recent[n] = nil
	}
	if a.recent = a.recent[n:]; len(a.recent) == 0 {
		a.recent = nil
	}
}

// unbegin no longer counts the call as begun lately. Needs mu.
func (a *Admission) unbegin(p *Place) {
	if p.begun {
		p.begun = false
		a.begun -= weight(p)
		p.of.begun -= weight(p)
	}
}

// unwait takes a call out of the line. Needs mu.
func (a *Admission) unwait(p *Place) {
	heap.Remove(&a.line, p.at)
	if p.of.waits--; p.of.waits == 0 {
		a.waiting--
	}
}

// next lets calls begin that are due. Needs mu.
func (a *Admission) next(now time.Time) {
	a.age(time.Time{})
	for len(a.line) > 0 && a.fits(a.line[0]) {
		p := a.line[0]
		a.unwait(p)
		a.begin(p, now)
		close(p.turn)
	}
	if len(a.line) > 0 && !a.looking { // look again once what is before them is no longer new
		a.looking = true
		a.look.Reset(turnTime)
	}
}

// again looks for calls that are in for turnTime while others are in line. On a busy machine they may
// have waited for the processors alone, so it lets all goroutines run that can, a few times, before
// it takes them for calls that wait for something else.
func (a *Admission) again() {
	before := time.Now().Add(-turnTime)
	for range turnRounds {
		runtime.Gosched()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looking = false
	a.age(before)
	a.next(time.Now())
}

// Waits notes that the call waits for something other than a processor.
func (p *Place) Waits() {
	a := p.in
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unbegin(p)
	if len(a.line) > 0 {
		a.next(time.Now())
	}
}

// Waiting returns the number of callers that have calls waiting for their turn.
func (a *Admission) Waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting
}

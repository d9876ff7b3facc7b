package section

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
	"github.com/seqsvr/seqsvr/seq"
)

// Fault is the error of one index of a batch.
type Fault struct {
	Index int
	Err   error
}

// Taken answers a Take with First[i]..Last[i] inclusive, or zeros if Faults has i. If all counts are 1,
// Last is First.
type Taken struct {
	First, Last []uint64
	Faults      []Fault
	Unordered   bool   // some were served without a lease, in a unique-only space
	Replayed    []bool // in an exact space, whether index i repeats an earlier request; nil if none does
}

// Take takes counts[i] numbers (1 each if counts is empty) of keys[i]. Every key
// succeeds or fails for itself. A call may be repeated; that skips numbers.
func (t *Table) Take(ctx context.Context, space *seq.Space, keys seq.Counters, counts []uint32) Taken {
	k := t.Begin(space, keys, counts)
	k.Settle(ctx)
	return k.out
}

// Begin serves all that needs no waiting; Settle does the rest.
func (t *Table) Begin(space *seq.Space, keys seq.Counters, counts []uint32) *Taking {
	k := new(Taking)
	k.Set(t, space, keys, counts)
	// The clock is read after the last request of the batch has arrived, once.
	k.Pass(t.BatchClock())
	return k
}

// Taking is one Take in progress: Set, Pass, Settle. It may be used again. Not safe for
// concurrent use.
//
//	out.First[i] != 0 once index i was served; i is in pending until it was, or failed
type Taking struct {
	table   *Table
	space   *seq.Space
	keys    seq.Counters
	counts  []uint32
	out     Taken
	pending []int
	numbers uint64
	line    *Line  // of the call
	alone   Line   // of a taking that shares none
	epochs  looks  // strict: what was taken under
	fetched uint64 // the memory that was read ahead; the value has no meaning

	requests []Request     // of an exact space; nil if no request has an id
	read     time.Duration // the clock of an Open, read once and again after each wait; zero if it was not read
	opening  *opening      // what an Open adds; nil of other takes

	strict, unique, exact bool // the mode of the space

	begun  time.Time // when looked at; else zero
	weight uint64    // of what is looked at: how many batches it stands for
}

// Set sets a Take up; the room of the former one is used again. Nothing is taken before
// Pass.
func (t *Taking) Set(table *Table, space *seq.Space, keys seq.Counters, counts []uint32) {
	first := zeros(t.out.First, len(keys.UIDs))
	last := first
	if slices.ContainsFunc(counts, func(n uint32) bool { return n > 1 }) {
		last = make([]uint64, len(keys.UIDs))
	}
	*t = Taking{table: table, space: space, keys: keys, counts: counts, pending: t.pending[:0], out: Taken{First: first, Last: last},
		strict: space.Mode == seq.Strict, unique: space.Mode == seq.UniqueOnly, exact: space.Mode == seq.Exact}
	t.line = &t.alone
	t.sample()
}

// Behind lets the Take share the line of its call: after Set, before Pass.
func (t *Taking) Behind(l *Line) { t.line = l }

// zeros is n zeros, in room if they fit.
func zeros(room []uint64, n int) []uint64 {
	if cap(room) < n {
		return make([]uint64, n)
	}
	room = room[:n]
	clear(room)
	return room
}

// Out returns the numbers taken by now. It is complete once Settled returns true, or after Settle.
func (t *Taking) Out() *Taken { return &t.out }

// Early reports whether numbers may be returned before Settle. In a strict space ok is false, because a
// quorum must be asked first. The result some reports whether any index was served.
func (t *Taking) Early() (some, ok bool) { return len(t.pending) < len(t.keys.UIDs), !t.strict }

// Settled reports whether the answer is complete without waiting for anything.
func (t *Taking) Settled() bool { return len(t.pending) == 0 && len(t.epochs) == 0 }

// Settle waits for what Pass left open, as long as ctx lasts.
func (t *Taking) Settle(ctx context.Context) {
	if !t.Settled() {
		var span tracing.Span
		ctx, span = t.table.traces.Child(ctx, "alloc.wait")
		span.Int("keys", len(t.pending))
		defer span.End(nil)
	}
	if t.exact {
		t.settleLogged(ctx)
	} else {
		t.stepAll(ctx)
		for _, i := range t.pending {
			t.one(ctx, i)
		}
	}
	t.pending = t.pending[:0]
	t.confirmEpochs(ctx)
	t.observe()
}

// stepAll asks for the steps of all sections that have too few numbers, before any is waited for:
// the stores write them together.
func (t *Taking) stepAll(ctx context.Context) {
	if len(t.pending) < 2 {
		return
	}
	now := t.table.clock.Now()
	for _, i := range t.pending {
		c, uid := t.table.Section(t.space.SectionOf(t.keys.Places[i])), t.keys.UIDs[i]
		c.mu.Lock()
		if c.state == Owned && c.leased(now) {
			_, known := c.table.Get(uint64(uid))
			if need := t.need(c, i); need > c.confirmed && (known || !c.memory.above(allUsed)) {
				t.table.ahead(ctx, c, need)
			}
		}
		c.mu.Unlock()
	}
}

// need returns the ceiling that the key of index i needs for all of its indices that wait. Needs c.mu.
func (t *Taking) need(c *Section, i int) uint64 {
	uid := t.keys.UIDs[i]
	cur, _ := c.table.Get(uint64(uid))
	return cur + min(t.line.numbers(c, uid, t.count(i)), uint64(seq.MaxSeq)-cur)
}

func (t *Taking) count(i int) uint64 {
	if len(t.counts) == 0 {
		return 1
	}
	return uint64(t.counts[i])
}

// one serves index i, waiting for a step, an acquisition or a hand-over as long
// as the caller does.
func (t *Taking) one(ctx context.Context, i int) {
	c, uid := t.table.Section(t.space.SectionOf(t.keys.Places[i])), t.keys.UIDs[i]
	defer t.line.left(c, uid, t.count(i))
	fail := func(err error) {
		t.fail(i, err)
		t.line.ended(c, uid, err)
	}
	if err := t.line.failed(c, uid); err != nil {
		t.fail(i, err)
		return
	}
	for {
		c.mu.Lock()
		wait, err := t.try(ctx, c, i)
		changed := c.changed
		c.mu.Unlock()
		if !wait {
			if err != nil {
				fail(err)
			}
			return
		}
		if err := t.table.await(ctx, c, changed); err != nil {
			fail(err)
			return
		}
		t.read = 0
	}
}

// try serves index i if it can be served now. wait says that c.changed will tell
// when to look again. Needs c.mu.
func (t *Taking) try(ctx context.Context, c *Section, i int) (wait bool, err error) {
	switch c.state {
	case Absent:
		return false, t.table.guide.NotOwner(c.id, c.successor)
	case Acquiring, Sealed:
		if err := t.table.guide.FailFast(); err != nil {
			return false, fmt.Errorf("section %d is %s: %w", c.id, c.state, err)
		}
		return true, nil
	}
	if t.opening == nil || t.read == 0 {
		t.read = t.table.clock.Now()
	}
	now := t.read
	lapsed := !c.leased(now)
	if lapsed && t.space.Mode != seq.UniqueOnly {
		return false, fmt.Errorf("section %d: %w", c.id, t.table.leaseLoss())
	}
	cur, _ := c.table.Get(uint64(t.keys.UIDs[i]))
	if n := t.count(i); n > uint64(seq.MaxSeq)-cur {
		return false, fmt.Errorf("%s stands at %d: %w", t.keys.At(i), cur, seq.ErrOverflow)
	}
	if err := c.admits(t.keys.At(i)); err != nil {
		return false, err
	}
	if t.opening != nil {
		if err := c.book.Admit(uint64(t.keys.UIDs[i]), now); err != nil {
			return false, fmt.Errorf("%s: %w", t.keys.At(i), err)
		}
	}
	if t.take(c, i, counters.Ref{}, false, t.table.unix()) {
		t.out.Unordered = t.out.Unordered || lapsed
		if t.opening != nil {
			t.open(c, i, now)
		}
		return false, nil
	}
	if lapsed {
		return false, fmt.Errorf("section %d: confirmed numbers used up: %w", c.id, t.table.leaseLoss())
	}
	t.table.ahead(ctx, c, t.need(c, i))
	return true, nil
}

func (t *Taking) fail(i int, err error) {
	t.out.First[i], t.out.Last[i] = 0, 0
	t.out.Faults = append(t.out.Faults, Fault{Index: i, Err: err})
}

// confirmEpochs looks, and takes back what was taken under an epoch that is over.
func (t *Taking) confirmEpochs(ctx context.Context) {
	for i, err := range t.table.look(ctx, t.epochs).of(t.space, t.keys) {
		if t.out.First[i] != 0 {
			t.fail(i, err)
		}
	}
}

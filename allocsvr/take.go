package allocsvr

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/counters"
	"github.com/seqsvr/seqsvr/internal/tracing"
	"github.com/seqsvr/seqsvr/seq"
)

// Fault is the error of one index of a batch.
type Fault struct {
	Index int
	Err   error
}

// Taken answers a Take: First[i]..Last[i] inclusive, 0 where Faults has i. Last is
// First itself where all counts are 1.
type Taken struct {
	First, Last []uint64
	Faults      []Fault
	Unordered   bool // some were served without a lease, in a unique-only space
}

// Take takes counts[i] numbers (1 each if counts is empty) of uids[i]. Every key
// succeeds or fails for itself. A call may be repeated; that skips numbers.
func (a *Alloc) Take(ctx context.Context, space *seq.Space, uids []seq.UID, counts []uint32) Taken {
	t := a.beginTake(space, uids, counts)
	t.settle(ctx)
	return t.out
}

// beginTake serves all that needs no waiting; settle does the rest.
func (a *Alloc) beginTake(space *seq.Space, uids []seq.UID, counts []uint32) *taking {
	t := new(taking)
	t.begin(a, space, uids, counts)
	// The clock is read after the last request of the batch has arrived, once.
	t.pass(a.moment())
	return t
}

// taking is one Take in progress: beginTake, settle. It may be used again.
//
//	out.First[i] != 0 once index i was served; i is in pending until it was, or failed
type taking struct {
	a       *Alloc
	space   *seq.Space
	uids    []seq.UID
	counts  []uint32
	out     Taken
	pending []int
	numbers uint64
	epochs  map[seq.SectionID]seq.Epoch // strict: what was taken under
	fetched uint64                      // what was read to have it near; of no meaning

	strict, unique bool // the mode of the space

	begun  time.Time // when looked at; else zero
	weight uint64    // of what is looked at: how many batches it stands for
}

// begin sets a Take up; the room of the former one is used again.
func (t *taking) begin(a *Alloc, space *seq.Space, uids []seq.UID, counts []uint32) {
	first := zeros(t.out.First, len(uids))
	last := first
	if slices.ContainsFunc(counts, func(n uint32) bool { return n > 1 }) {
		last = make([]uint64, len(uids))
	}
	*t = taking{a: a, space: space, uids: uids, counts: counts, pending: t.pending[:0], out: Taken{First: first, Last: last},
		strict: space.Mode == seq.Strict, unique: space.Mode == seq.UniqueOnly}
	t.sample()
}

// zeros is n zeros, in room if they fit.
func zeros(room []uint64, n int) []uint64 {
	if cap(room) < n {
		return make([]uint64, n)
	}
	room = room[:n]
	clear(room)
	return room
}

// settled says whether the answer is complete without waiting for anything.
func (t *taking) settled() bool { return len(t.pending) == 0 && len(t.epochs) == 0 }

// settle waits for what pass left open, as long as ctx lasts.
func (t *taking) settle(ctx context.Context) {
	if !t.settled() {
		var span tracing.Span
		ctx, span = t.a.traces.Child(ctx, "alloc.wait")
		span.Int("keys", len(t.pending))
		defer span.End(nil)
	}
	for _, i := range t.pending {
		t.one(ctx, i)
	}
	t.pending = t.pending[:0]
	t.confirmEpochs(ctx)
	t.observe()
}

func (t *taking) count(i int) uint64 {
	if len(t.counts) == 0 {
		return 1
	}
	return uint64(t.counts[i])
}

// one serves index i, waiting for a step, an acquisition or a hand-over as long
// as the caller does.
func (t *taking) one(ctx context.Context, i int) {
	c := t.a.cells[t.space.SectionOf(t.uids[i])]
	for {
		c.mu.Lock()
		wait, err := t.try(ctx, c, i)
		changed := c.changed
		c.mu.Unlock()
		if !wait {
			if err != nil {
				t.fail(i, err)
			}
			return
		}
		if err := t.a.await(ctx, c, changed); err != nil {
			t.fail(i, err)
			return
		}
	}
}

// try serves index i if it can be served now. wait says that c.changed will tell
// when to look again. Needs c.mu.
func (t *taking) try(ctx context.Context, c *cell, i int) (wait bool, err error) {
	switch c.state {
	case absent:
		return false, t.a.notOwner(c)
	case acquiring, sealed:
		if err := t.a.waitless(); err != nil {
			return false, fmt.Errorf("section %d is %s: %w", c.id, c.state, err)
		}
		return true, nil
	}
	now := t.a.clock.Now()
	lapsed := !c.leased(now)
	if lapsed && t.space.Mode != seq.UniqueOnly {
		return false, fmt.Errorf("section %d: %w", c.id, t.a.leaseLoss())
	}
	cur, _ := c.table.Get(uint64(t.uids[i]))
	if n := t.count(i); n > uint64(seq.MaxSeq)-cur {
		return false, fmt.Errorf("uid %d stands at %d: %w", t.uids[i], cur, seq.ErrOverflow)
	}
	if t.take(c, i, counters.Spot{}, false, t.a.unix()) {
		t.out.Unordered = t.out.Unordered || lapsed
		return false, nil
	}
	if lapsed {
		return false, fmt.Errorf("section %d: confirmed numbers used up: %w", c.id, t.a.leaseLoss())
	}
	t.a.aheadFor(ctx, c, cur+t.count(i))
	return true, nil
}

func (t *taking) fail(i int, err error) {
	t.out.First[i], t.out.Last[i] = 0, 0
	t.out.Faults = append(t.out.Faults, Fault{Index: i, Err: err})
}

// noteEpoch remembers under which epoch a section served. Needs c.mu.
func (t *taking) noteEpoch(c *cell) {
	if t.epochs == nil {
		t.epochs = make(map[seq.SectionID]seq.Epoch)
	}
	t.epochs[c.id] = c.epoch
}

// confirmEpochs asks W stores whether the epochs are still the promised ones. A
// later owner needs a promise of one of them, given after this request came, so
// whatever it hands out is no earlier than this request (docs/decisions/007).
func (t *taking) confirmEpochs(ctx context.Context) {
	if len(t.epochs) == 0 {
		return
	}
	regs := make([]seq.Register, 0, len(t.epochs))
	epochs := make([]seq.Epoch, 0, len(t.epochs))
	for id, epoch := range t.epochs {
		regs, epochs = append(regs, seq.SectionRegister(id)), append(epochs, epoch)
	}
	bad := make(map[seq.SectionID]error)
	for k, err := range t.a.holder.Standing(ctx, regs, epochs) {
		if id, _ := regs[k].Section(); err != nil {
			bad[id] = fmt.Errorf("section %d: strict check: %w", id, err)
		}
	}
	for i, uid := range t.uids {
		if err := bad[t.space.SectionOf(uid)]; err != nil && t.out.First[i] != 0 {
			t.fail(i, err)
		}
	}
}

// Now answers a Current of one UID.
type Now struct {
	Value      uint64
	UpperBound bool
	LastTaken  int64 // unix seconds, 0 if not known
}

// Current reads uids without taking. The values are at or above what was handed
// out before the call began.
func (a *Alloc) Current(ctx context.Context, space *seq.Space, uids []seq.UID) ([]Now, []Fault) {
	out := make([]Now, len(uids))
	var faults []Fault
	for i, uid := range uids {
		c := a.cells[space.SectionOf(uid)]
		err := a.whenOwned(ctx, c, func() (bool, error) {
			value, exact := c.table.Get(uint64(uid))
			out[i] = Now{Value: value, UpperBound: !exact && value > 0}
			if at, ok := c.table.LastTaken(uint64(uid)); ok {
				out[i].LastTaken = int64(at)
			}
			return true, nil
		})
		if err != nil {
			out[i] = Now{}
			faults = append(faults, Fault{Index: i, Err: err})
		}
	}
	return out, faults
}

// whenOwned runs do under the cell's lock while the section is owned and leased,
// again after each change until do is done or the caller has gone.
func (a *Alloc) whenOwned(ctx context.Context, c *cell, do func() (done bool, err error)) error {
	for {
		c.mu.Lock()
		var done bool
		var err error
		switch {
		case c.state == absent:
			err = a.notOwner(c)
		case c.state == owned && !c.leased(a.clock.Now()):
			err = fmt.Errorf("section %d: %w", c.id, a.leaseLoss())
		case c.state == owned:
			done, err = do()
		default:
			err = a.waitless()
		}
		changed := c.changed
		c.mu.Unlock()
		if done || err != nil {
			return err
		}
		if err := a.await(ctx, c, changed); err != nil {
			return err
		}
	}
}

// await waits until the cell has changed, or for a part of the lease, so that a
// request that waits for a step learns when the lease has ended meanwhile.
func (a *Alloc) await(ctx context.Context, c *cell, changed <-chan struct{}) error {
	timer := time.NewTimer(a.lease / 4)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return fmt.Errorf("section %d is %s: %w", c.id, a.stateOf(c), context.Cause(ctx))
	}
	return nil
}

func (a *Alloc) stateOf(c *cell) state {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// unix is the wall clock in seconds, for the time of the last number only; no
// decision rests on it.
func (a *Alloc) unix() uint32 {
	return uint32(min(max(a.wall().Unix(), 0), math.MaxUint32))
}

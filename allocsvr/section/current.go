package section

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/seq"
)

// Now answers a Current of one key.
type Now struct {
	Value      uint64
	UpperBound bool
	LastTaken  int64 // unix seconds, 0 if not known
}

// Current reads keys without taking. The values are at or above what was handed
// out before the call began.
func (t *Table) Current(ctx context.Context, space *seq.Space, keys seq.Counters) ([]Now, []Fault) {
	if space.Mode == seq.Exact {
		return t.logged.current(ctx, space, keys)
	}
	out := make([]Now, len(keys.UIDs))
	faults := t.read(ctx, space, keys, func(i int, c *Section) {
		uid := uint64(keys.UIDs[i])
		value, exact := c.table.Get(uid)
		out[i] = Now{Value: value, UpperBound: !exact && value > 0}
		if at, ok := c.table.LastTaken(uid); ok {
			out[i].LastTaken = int64(at)
		}
	})
	for _, f := range faults {
		out[f.Index] = Now{}
	}
	return out, faults
}

// read calls one for each index, under the lock of its section while that is owned and leased. In a strict
// space what was read holds once a look has found the epochs standing, after it was read.
func (t *Table) read(ctx context.Context, space *seq.Space, keys seq.Counters, one func(i int, c *Section)) (faults []Fault) {
	var read looks
	for i, place := range keys.Places {
		c := t.Section(space.SectionOf(place))
		err := t.whenOwned(ctx, c, func() (bool, error) {
			one(i, c)
			if space.Mode == seq.Strict {
				read.note(c)
			}
			return true, nil
		})
		if err != nil {
			faults = append(faults, Fault{Index: i, Err: err})
		}
	}
	for i, err := range t.look(ctx, read).of(space, keys) {
		if !slices.ContainsFunc(faults, func(f Fault) bool { return f.Index == i }) {
			faults = append(faults, Fault{Index: i, Err: err})
		}
	}
	return faults
}

// looks are the epochs under which sections of strict spaces made an answer, which is given once a look
// has found them standing. The zero value is ready to use.
type looks map[seq.SectionID]seq.Epoch

// note notes the section's epoch. Needs c.mu.
func (l *looks) note(c *Section) {
	if *l == nil {
		*l = make(looks)
	}
	if _, noted := (*l)[c.id]; !noted { // else what was taken under the first one would be taken for checked
		(*l)[c.id] = c.epoch
	}
}

// notStanding has the sections that a look did not find standing.
type notStanding map[seq.SectionID]error

// of returns the errors of keys, by index.
func (n notStanding) of(space *seq.Space, keys seq.Counters) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		if len(n) == 0 {
			return
		}
		for i, place := range keys.Places {
			if err := n[space.SectionOf(place)]; err != nil && !yield(i, err) {
				return
			}
		}
	}
}

// look asks W stores whether the epochs are still the promised ones, and returns the errors of the others.
// It must begin after the answers were made. A later owner needs a promise of one of these stores, given
// after the look began, so whatever it hands out is no earlier than the requests (docs/decisions.md, 007).
// No lease and no clock takes part. A section whose epoch is over is given up.
func (t *Table) look(ctx context.Context, at looks) notStanding {
	if len(at) == 0 {
		return nil
	}
	regs := make([]seq.Register, 0, len(at))
	epochs := make([]seq.Epoch, 0, len(at))
	for id, epoch := range at {
		regs, epochs = append(regs, seq.SectionRegister(id)), append(epochs, epoch)
	}
	bad := make(notStanding)
	for k, err := range t.holder.Standing(ctx, regs, epochs) {
		if err == nil {
			continue
		}
		id, _ := regs[k].Section()
		bad[id] = fmt.Errorf("section %d: strict check: %w", id, err)
		if over := (*ownership.NotStanding)(nil); errors.As(err, &over) && epochs[k].Less(over.Met) {
			t.lose(t.Section(id), epochs[k], over.Met)
		}
	}
	return bad
}

// whenOwned runs do under the cell's lock while the section is owned and leased,
// again after each change until do is done or the caller has gone.
func (t *Table) whenOwned(ctx context.Context, c *Section, do func() (done bool, err error)) error {
	return t.whenOwnedAt(ctx, c, new(time.Duration), do)
}

// whenOwnedAt is whenOwned for a caller that has read the clock, unless now is zero. It reads it again after a wait.
func (t *Table) whenOwnedAt(ctx context.Context, c *Section, now *time.Duration, do func() (done bool, err error)) error {
	for {
		c.mu.Lock()
		if *now == 0 {
			*now = t.clock.Now()
		}
		var done bool
		var err error
		switch {
		case c.state == Absent:
			err = t.guide.NotOwner(c.id, c.successor)
		case c.state == Owned && !c.leased(*now):
			err = fmt.Errorf("section %d: %w", c.id, t.leaseLoss())
		case c.state == Owned:
			done, err = do()
		default:
			err = t.guide.FailFast()
		}
		changed := c.changed
		c.mu.Unlock()
		if done || err != nil {
			return err
		}
		if err := t.await(ctx, c, changed); err != nil {
			return err
		}
		*now = 0
	}
}

// await waits until the cell has changed, or for a part of the lease, so that a
// request that waits for a step learns when the lease has ended meanwhile.
func (t *Table) await(ctx context.Context, c *Section, changed <-chan struct{}) error {
	timer := time.NewTimer(t.lease / 4)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		if t.full.Load() {
			return fmt.Errorf("section %d %s: %w: %w", c.id, c.awaited(), seq.ErrStoreFull, context.Cause(ctx))
		}
		return fmt.Errorf("section %d %s: %w", c.id, c.awaited(), context.Cause(ctx))
	}
	return nil
}

// awaited says, for people, what a request to the section waits for.
func (c *Section) awaited() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Owned && c.target > 0 {
		return fmt.Sprintf("waits for the stores to confirm a ceiling of %d, beyond %d", c.target, c.confirmed)
	}
	return "is " + c.state.String()
}

// unix returns the wall clock in seconds, for the time of the last number. It decides which counters are
// folded first, and no promise rests on it.
func (t *Table) unix() uint32 {
	return uint32(min(max(t.wall().Unix(), 0), math.MaxUint32))
}

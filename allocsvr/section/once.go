package section

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/logs"
	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
)

// Sections of exact spaces go by their logs: each answer waits for a commit at W stores and
// rests on epochs alone, so that no lease is asked for.

// Request names a take of an exact space that may be repeated.
type Request struct {
	ID   string    // 1 to exact.MaxID bytes, of its key; "": it has none, and a repetition is another take
	Sent time.Time // when its caller first sent it; zero: now
}

// Name gives the requests of a Take in an exact space their ids, requests[i] to keys[i]: after
// Set, before Pass. Out().Replayed then says which had got their numbers before.
func (t *Taking) Name(requests []Request) { t.requests = requests }

// Lookup gives what a request of an exact space has got, First 0 for nothing. It takes
// nothing.
func (t *Table) Lookup(ctx context.Context, space *seq.Space, key seq.Counter, id string) (exact.Answer, error) {
	if err := space.KeepsIDs(); err != nil {
		return exact.Answer{}, err
	}
	return t.logged(ctx, t.Cell(space.SectionOf(key.Place)), func(g *logs.Log) (logs.Ticket, error) { return g.Lookup(ctx, key.UID, id) })
}

// logOf is the log of a section that is owned, waiting for it as long as ctx lasts.
func (t *Table) logOf(ctx context.Context, c *Cell) (*logs.Log, error) {
	for {
		c.mu.Lock()
		state, g, successor, changed := c.state, c.log, c.successor, c.changed
		c.mu.Unlock()
		switch state {
		case Absent:
			return nil, t.guide.NotOwner(c.id, successor)
		case Owned:
			// Nothing would be answered before W stores are back, and be taken all the same.
			return g, t.guide.Quorum()
		case Acquiring, Sealed:
		}
		if err := t.guide.Waitless(); err != nil {
			return nil, fmt.Errorf("section %d is %s: %w", c.id, state, err)
		}
		if err := t.await(ctx, c, changed); err != nil {
			return nil, err
		}
	}
}

// logged asks the log of a section, and waits for the answer to hold: again if the log was
// closed before.
func (t *Table) logged(ctx context.Context, c *Cell, ask func(*logs.Log) (logs.Ticket, error)) (exact.Answer, error) {
	for {
		ticket, err := t.asked(ctx, c, ask)
		if err == nil {
			err = ticket.Wait(ctx)
		}
		if err = conflicting(ctx, ticket, err); !errors.Is(err, logs.ErrClosed) {
			return ticket.Answer, err
		}
	}
}

// asked asks the log of a section: again if that was closed meanwhile.
func (t *Table) asked(ctx context.Context, c *Cell, ask func(*logs.Log) (logs.Ticket, error)) (logs.Ticket, error) {
	for {
		g, err := t.logOf(ctx, c)
		if err != nil {
			return logs.Ticket{}, err
		}
		ticket, err := ask(g)
		switch {
		case !errors.Is(err, logs.ErrClosed):
			return ticket, err
		case ctx.Err() != nil:
			return logs.Ticket{}, fmt.Errorf("section %d: %w", c.id, context.Cause(ctx))
		}
		runtime.Gosched() // the section is about to be given up
	}
}

// conflicting has a conflict wait, too, until what it tells is at W stores.
func conflicting(ctx context.Context, ticket logs.Ticket, err error) error {
	if errors.Is(err, exact.ErrConflict) {
		if late := ticket.Wait(ctx); late != nil {
			return late
		}
	}
	return err
}

// settleLogged takes the numbers of all keys.
func (t *Taking) settleLogged(ctx context.Context) {
	t.table.together(ctx, t.pending, t.cellOf, func(g *logs.Log, i int) (logs.Ticket, error) { return t.gather(ctx, g, i) },
		func(i int, a exact.Answer, err error) {
			if err != nil {
				t.fail(i, fmt.Errorf("%s: %w", t.keys.At(i), err))
				return
			}
			t.got(i, a)
		})
}

// together asks the logs of many keys: first all are asked, so that they share commits, and then
// each is waited for.
func (t *Table) together(ctx context.Context, keys []int, cell func(i int) *Cell, ask func(g *logs.Log, i int) (logs.Ticket, error), done func(i int, a exact.Answer, err error)) {
	tickets, errs := make([]logs.Ticket, len(keys)), make([]error, len(keys))
	for k, i := range keys {
		tickets[k], errs[k] = t.asked(ctx, cell(i), func(g *logs.Log) (logs.Ticket, error) { return ask(g, i) })
	}
	for k, i := range keys {
		answer, err := tickets[k].Answer, errs[k]
		if err == nil {
			err = tickets[k].Wait(ctx)
		}
		if err = conflicting(ctx, tickets[k], err); errors.Is(err, logs.ErrClosed) {
			answer, err = t.logged(ctx, cell(i), func(g *logs.Log) (logs.Ticket, error) { return ask(g, i) })
		}
		done(i, answer, err)
	}
}

// indices are 0 to n-1.
func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func (t *Taking) cellOf(i int) *Cell { return t.table.Cell(t.space.SectionOf(t.keys.Places[i])) }

// gather has a log take the numbers of index i.
func (t *Taking) gather(ctx context.Context, g *logs.Log, i int) (logs.Ticket, error) {
	var r Request
	if i < len(t.requests) {
		r = t.requests[i]
	}
	return g.Take(ctx, t.keys.UIDs[i], uint32(t.count(i)), r.ID, r.Sent)
}

// got takes the answer of index i in.
func (t *Taking) got(i int, a exact.Answer) {
	t.out.First[i], t.out.Last[i] = a.First, a.First+uint64(a.Count)-1
	if a.Replayed {
		if t.out.Replayed == nil {
			t.out.Replayed = make([]bool, len(t.keys.UIDs))
		}
		t.out.Replayed[i] = true
		return
	}
	t.numbers += uint64(a.Count)
}

// raiseLogged is Raise of a key of an exact space. No ceiling is shared there: it is the key
// that may not jump too far.
func (t *Table) raiseLogged(ctx context.Context, r *raising) (uint64, error) {
	answer, err := t.logged(ctx, r.c, func(g *logs.Log) (logs.Ticket, error) {
		return g.Raise(ctx, r.key.UID, r.floor, r.allowed)
	})
	var far *jump
	if errors.As(err, &far) {
		if err := t.record(ctx, r.c.id, r.key, far.from, r.floor); err != nil {
			return 0, fmt.Errorf("raise %s to %d: %w", r.key, r.floor, err)
		}
		r.recorded = true
		return t.raiseLogged(ctx, r)
	}
	return answer.First, err
}

// jump is a raise that is to be forced, and must stand in the log of events before.
type jump struct{ from uint64 }

func (j *jump) Error() string { return fmt.Sprintf("from %d", j.from) }

// allowed says whether a key of an exact space that stands at last may be raised; *jump: once
// that is recorded.
func (r *raising) allowed(last uint64) error {
	switch {
	case r.floor <= last:
		return nil
	case r.reach.Within > 0 && r.floor-last > r.reach.Within:
		return r.beyondGrant(last)
	case r.floor-last <= r.space.Jump() || r.recorded:
		return nil
	case r.reach.Force:
		return &jump{from: last}
	}
	return fmt.Errorf("raise %s to %d: %w: its number is %d, and space %q lets a raise move it by at most %d; more takes force",
		r.key, r.floor, seq.ErrJump, last, r.space.Name, r.space.Jump())
}

// currentLogged is Current of keys of an exact space.
func (t *Table) currentLogged(ctx context.Context, space *seq.Space, keys seq.Counters) (out []Now, faults []Fault) {
	out = make([]Now, len(keys.UIDs))
	cell := func(i int) *Cell { return t.Cell(space.SectionOf(keys.Places[i])) }
	t.together(ctx, indices(len(out)), cell, func(g *logs.Log, i int) (logs.Ticket, error) { return g.Current(ctx, keys.UIDs[i]) },
		func(i int, a exact.Answer, err error) {
			if err != nil {
				faults = append(faults, Fault{Index: i, Err: err})
				return
			}
			out[i].Value = a.First
		})
	return out, faults
}

// raiseAllLogged is RaiseAll of keys of an exact space.
func (t *Table) raiseAllLogged(ctx context.Context, space *seq.Space, keys seq.Counters, floors []uint64, within uint64) (values []uint64, faults []Fault) {
	values = make([]uint64, len(floors))
	cell := func(i int) *Cell { return t.Cell(space.SectionOf(keys.Places[i])) }
	ask := func(g *logs.Log, i int) (logs.Ticket, error) {
		if err := seq.CheckFloor("at_least", floors[i]); err != nil {
			return logs.Ticket{}, fmt.Errorf("raise %s: %w", keys.At(i), err)
		}
		r := t.raising(space, keys.At(i), floors[i], Reach{Within: within})
		return g.Raise(ctx, keys.UIDs[i], floors[i], r.allowed)
	}
	t.together(ctx, indices(len(floors)), cell, ask, func(i int, a exact.Answer, err error) {
		if err != nil {
			faults = append(faults, Fault{Index: i, Err: err})
			return
		}
		values[i] = a.First
	})
	return values, faults
}

// pageLogged is Page of a section of an exact space.
func (t *Table) pageLogged(ctx context.Context, c *Cell, from uint64) (p Page, err error) {
	g, err := t.logOf(ctx, c)
	if err == nil {
		p.UIDs, p.Values, p.Next, err = g.Page(ctx, seq.UID(from), pageBlocks<<seq.BlockBits)
	}
	return p, err
}

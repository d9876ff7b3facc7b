package section

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/logs"
	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
)

// logged serves the sections of exact spaces from their logs: each answer waits for a commit at
// W stores and rests on epochs alone, so that no lease is asked for. All that it knows of the
// table is how to find a log.
type logged struct {
	find   logs.Finder
	record func(ctx context.Context, id seq.SectionID, key seq.Counter, from, to uint64) error // Config.Record
}

// Request names a take of an exact space that may be repeated.
type Request struct {
	ID   string    // 1 to exact.MaxID bytes, unique for its key; if "", a repetition is another take
	Sent time.Time // when the caller first sent it; zero means now
}

// Lookup gives what a request of an exact space has got, First 0 for nothing. It takes
// nothing.
func (t *Table) Lookup(ctx context.Context, space *seq.Space, key seq.Counter, id string) (exact.Answer, error) {
	if err := space.KeepsIDs(); err != nil {
		return exact.Answer{}, err
	}
	return t.logged.find.Ask(ctx, space.SectionOf(key.Place), func(g *logs.Log) (logs.Ticket, error) { return g.Lookup(ctx, key.UID, id) })
}

// logOf returns the log of a section that is owned, waiting for it as long as ctx lasts.
func (t *Table) logOf(ctx context.Context, id seq.SectionID) (*logs.Log, error) {
	return t.logIf(ctx, id, t.guide.Quorum)
}

// logIf is logOf for a section that is owned already if quorum says so, which the keys of a batch ask once.
func (t *Table) logIf(ctx context.Context, id seq.SectionID, quorum func() error) (*logs.Log, error) {
	c := t.Section(id)
	for {
		c.mu.Lock()
		state, g, successor, changed := c.state, c.log, c.successor, c.changed
		c.mu.Unlock()
		switch state {
		case Absent:
			return nil, t.guide.NotOwner(c.id, successor)
		case Owned:
			// Nothing would be answered before W stores are back, and be taken all the same.
			return g, quorum()
		case Acquiring, Sealed:
		}
		if err := t.guide.FailFast(); err != nil {
			return nil, fmt.Errorf("section %d is %s: %w", c.id, state, err)
		}
		if err := t.await(ctx, c, changed); err != nil {
			return nil, err
		}
		quorum = t.guide.Quorum
	}
}

// Name gives ids to the requests of a Take in an exact space, requests[i] to keys[i]. Call it after Set and
// before Pass. Out().Replayed then says which requests had got their numbers before.
func (t *Taking) Name(requests []Request) { t.requests = requests }

// settleLogged takes the numbers of all keys.
func (t *Taking) settleLogged(ctx context.Context) {
	ids := make([]seq.SectionID, len(t.pending))
	for k, i := range t.pending {
		ids[k] = t.space.SectionOf(t.keys.Places[i])
	}
	var at logs.Instant
	quorum := sync.OnceValue(t.table.guide.Quorum)
	find := logs.Finder(func(ctx context.Context, id seq.SectionID) (*logs.Log, error) { return t.table.logIf(ctx, id, quorum) })
	find.AskAll(ctx, ids, func(k int, g *logs.Log) (logs.Ticket, error) { return t.gather(ctx, &at, g, t.pending[k]) },
		func(k int, a exact.Answer, err error) {
			i := t.pending[k]
			t.table.changed(t.table.Section(ids[k]), t.keys.UIDs[i]) // after an error, too: it may have been taken
			if err != nil {
				t.ended(i, err)
				t.fail(i, fmt.Errorf("%s: %w", t.keys.At(i), err))
				return
			}
			if err := t.closed(i, a); err != nil {
				t.fail(i, fmt.Errorf("%s: %w", t.keys.At(i), err))
				return
			}
			t.got(i, a)
		})
}

// gather has a log take the numbers of index i.
func (t *Taking) gather(ctx context.Context, at *logs.Instant, g *logs.Log, i int) (logs.Ticket, error) {
	var r Request
	if i < len(t.requests) {
		r = t.requests[i]
	}
	c, uid := t.table.Section(t.space.SectionOf(t.keys.Places[i])), t.keys.UIDs[i]
	if err := t.line.failed(c, uid); err != nil {
		return logs.Ticket{}, err
	}
	ticket, err := t.gathered(ctx, c, g, at, i, r)
	if err != nil && !errors.Is(err, logs.ErrClosed) { // a closed log is followed by another one
		t.ended(i, err)
	}
	return ticket, err
}

// gathered is gather in a section, with a ticket if the call opens tickets.
func (t *Taking) gathered(ctx context.Context, c *Section, g *logs.Log, at *logs.Instant, i int, r Request) (logs.Ticket, error) {
	if t.opening != nil {
		return t.openLogged(ctx, c, g, at, i, r)
	}
	return g.Take(ctx, at, t.keys.UIDs[i], uint32(t.count(i)), r.ID, r.Sent)
}

// ended notes the error of index i, unless it is about this request alone.
func (t *Taking) ended(i int, err error) {
	for _, own := range []error{exact.ErrConflict, exact.ErrExpired, exact.ErrTime, exact.ErrSpent} {
		if errors.Is(err, own) {
			return
		}
	}
	t.line.ended(t.table.Section(t.space.SectionOf(t.keys.Places[i])), t.keys.UIDs[i], err)
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

// raise is Raise of a key of an exact space. No ceiling is shared there: it is the key that may
// not jump too far, and the raises of keys that have numbers already add up.
func (l *logged) raise(ctx context.Context, r *raising) (uint64, error) {
	answer, err := l.find.Ask(ctx, r.c.id, func(g *logs.Log) (logs.Ticket, error) {
		return g.Raise(ctx, r.key.UID, r.floor, r.allowed)
	})
	var far *jump
	if errors.As(err, &far) {
		if err := l.record(ctx, r.c.id, r.key, far.from, r.floor); err != nil {
			return 0, fmt.Errorf("raise %s to %d: %w", r.key, r.floor, err)
		}
		r.recorded = true
		return l.raise(ctx, r)
	}
	return answer.First, err
}

// jump is a raise that is to be forced, and must stand in the log of events before.
type jump struct{ from uint64 }

func (j *jump) Error() string { return fmt.Sprintf("from %d", j.from) }

// allowed returns an error if a key of an exact space with the last number must not be raised. It returns a
// *jump if the raise must first be recorded.
func (r *raising) allowed(last uint64) error {
	switch {
	case r.floor <= last:
		return nil
	case r.reach.Within > 0 && r.floor-last > r.reach.Within:
		return r.beyondGrant(last)
	case r.recorded:
		return nil
	case r.floor-last <= r.space.Jump():
		if r.charge(last); r.wait == 0 {
			return nil
		}
	}
	if r.reach.Force {
		return &jump{from: last}
	}
	if r.wait > 0 {
		return r.tooFar()
	}
	return fmt.Errorf("raise %s to %d: %w: its number is %d, and space %q lets a raise move it by at most %d; more takes force",
		r.key, r.floor, seq.ErrJump, last, r.space.Name, r.space.Jump())
}

// charge adds the raise to the sum of the hour, once. The first raise of a key is free: there is
// one a key, and keys come in by many thousands when a space is filled.
func (r *raising) charge(last uint64) {
	if last == 0 || r.charged {
		return
	}
	r.wait = r.t.raises.take(r.c.id, r.space.Jump(), r.floor-last, r.t.clock.Now())
	r.charged = r.wait == 0
}

// raiseAll is RaiseAll of keys of an exact space.
func (l *logged) raiseAll(ctx context.Context, all []*raising) (values []uint64, faults []Fault) {
	values = make([]uint64, len(all))
	ids := make([]seq.SectionID, len(all))
	for i, r := range all {
		ids[i] = r.c.id
	}
	ask := func(i int, g *logs.Log) (logs.Ticket, error) {
		if err := all[i].check(); err != nil {
			return logs.Ticket{}, err
		}
		return g.Raise(ctx, all[i].key.UID, all[i].floor, all[i].allowed)
	}
	l.find.AskAll(ctx, ids, ask, func(i int, a exact.Answer, err error) {
		if err != nil {
			faults = append(faults, Fault{Index: i, Err: err})
			return
		}
		values[i] = a.First
	})
	return values, faults
}

// current is Current of keys of an exact space.
func (l *logged) current(ctx context.Context, space *seq.Space, keys seq.Counters) (out []Now, faults []Fault) {
	out = make([]Now, len(keys.UIDs))
	ids := make([]seq.SectionID, len(out))
	for i, place := range keys.Places {
		ids[i] = space.SectionOf(place)
	}
	l.find.AskAll(ctx, ids, func(i int, g *logs.Log) (logs.Ticket, error) { return g.Current(ctx, keys.UIDs[i]) },
		func(i int, a exact.Answer, err error) {
			if err != nil {
				faults = append(faults, Fault{Index: i, Err: err})
				return
			}
			out[i].Value = a.First
		})
	return out, faults
}

// page is Page of a section of an exact space.
func (l *logged) page(ctx context.Context, id seq.SectionID, from uint64) (p Page, err error) {
	g, err := l.find(ctx, id)
	if err == nil {
		p.UIDs, p.Values, p.Next, err = g.Page(ctx, seq.UID(from), pageBlocks<<seq.BlockBits)
	}
	return p, err
}

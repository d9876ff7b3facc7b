package section

import (
	"context"
	"fmt"

	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/seq"
)

// RaiseAll is Raise, without force, of many keys, floors[i] for index i: each is raised, or has an error of
// its own. It waits for all ceilings together: each is first asked to rise, and waited for
// when all have been asked.
func (t *Table) RaiseAll(ctx context.Context, space *seq.Space, keys seq.Counters, floors []uint64, within uint64) (values []uint64, faults []Fault) {
	all := make([]*raising, len(floors))
	for i, floor := range floors {
		all[i] = t.raising(space, keys.At(i), floor, Reach{Within: within})
	}
	if space.Mode == seq.Exact {
		values, faults = t.logged.raiseAll(ctx, all)
		for _, r := range all {
			t.changed(r.c, r.key.UID)
		}
		return values, faults
	}
	values = make([]uint64, len(floors))
	put := func(i int, value uint64, err error) {
		if values[i] = value; err != nil {
			values[i] = 0
			faults = append(faults, Fault{Index: i, Err: err})
		}
	}
	var waiting []int
	for i, r := range all {
		switch done, err := r.tryLift(ctx); {
		case err == nil && r.far:
			put(i, 0, r.tooFar())
		case done || err != nil:
			put(i, r.value, err)
		default:
			waiting = append(waiting, i)
		}
	}
	for _, i := range waiting {
		value, err := all[i].run(ctx)
		put(i, value, err)
	}
	read := make(looks)
	for _, r := range all {
		for id, epoch := range r.read {
			if first, noted := read[id]; !noted || epoch.Less(first) {
				read[id] = epoch
			}
		}
	}
	for i, bad := range t.look(ctx, read).of(space, keys) {
		if values[i] != 0 {
			put(i, 0, bad)
		}
	}
	return values, faults
}

// tryLift is lift that waits for nothing; not done where the cell cannot be asked now.
func (r *raising) tryLift(ctx context.Context) (done bool, err error) {
	if err := r.check(); err != nil {
		return true, err
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if r.c.state != Owned || !r.c.leased(r.t.clock.Now()) {
		return false, nil
	}
	return r.lift(ctx)
}

// RaiseSection lifts every key of a section to at least floor, also keys without a counter. It returns the
// new base, which is durable before the answer, and the errors of Raise without force.
func (t *Table) RaiseSection(ctx context.Context, id seq.SectionID, floor uint64) (base uint64, err error) {
	if err := seq.CheckFloor("at_least", floor); err != nil {
		return 0, fmt.Errorf("raise section %d: %w", id, err)
	}
	c := t.Section(id)
	if c.space.Mode == seq.Exact {
		return 0, fmt.Errorf("raise section %d: %w: it is of the exact space %q, whose keys share no ceiling: raise its keys", id, seq.ErrBadArgument, c.space.Name)
	}
	r := &raising{t: t, c: c, space: c.space, floor: floor}
	err = t.whenOwned(ctx, c, func() (bool, error) {
		if r.far = false; !r.covers(ctx) {
			return r.far, nil
		}
		c.table.Lift(floor)
		c.movedAll()
		c.weigh()
		base = c.table.Base()
		return true, nil
	})
	switch {
	case err != nil:
		return 0, err
	case r.far && r.wait > 0:
		return 0, fmt.Errorf("raise section %d to %d: %w: %s", id, floor, seq.ErrJump, tooMuch(id, c.space, r.wait))
	case r.far:
		return 0, fmt.Errorf("raise section %d to %d: %w: its ceiling is %d, and space %q lets a raise move it by at most %d",
			id, floor, seq.ErrJump, r.ceiling, c.space.Name, c.space.Jump())
	}
	return base, nil
}

// Page is some counters of a section, by rising UID, and what holds for the others.
type Page struct {
	counters.Page
	Base, Highest uint64
}

// Page reads the counters of the section from a UID on. No counter on it is below what had been handed out
// when the call began.
func (t *Table) Page(ctx context.Context, id seq.SectionID, from uint64) (p Page, err error) {
	c := t.Section(id)
	if c.space.Mode == seq.Exact {
		return t.logged.page(ctx, id, from)
	}
	var read looks
	err = t.whenOwned(ctx, c, func() (bool, error) {
		p = Page{c.table.Page(from, pageBlocks), c.table.Base(), c.table.High()}
		if c.space.Mode == seq.Strict {
			read.note(c)
		}
		return true, nil
	})
	if err == nil {
		err = t.look(ctx, read)[id]
	}
	return p, err
}

// pageBlocks is the number of blocks of 64 UIDs that are read under one lock, up to a megabyte.
const pageBlocks = 1024

package section

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Reach limits a raise.
type Reach struct {
	Force  bool   // allow more than the space's largest jump
	Within uint64 // numbers above the key's number; zero means no limit
}

// Raise lifts the sequence of key to at least floor; it is on W stores' disks
// before the answer. Idempotent. seq.ErrUIDMemory: the key would need a counter, and there
// is no memory for it.
//
// seq.ErrJump: the ceiling of the section would move by more than the space's largest
// jump, or by more than raisesAnHour of them with all raises of an hour. It is the ceiling that is measured and not the UID, because after a crash all UIDs
// of the section go on from there. With force it moves all the same, once the log of
// events has a line about it: a crash in between leaves a line too many, never one too few.
// seq.ErrForbidden: it would go further above the key's own number than reach says.
func (t *Table) Raise(ctx context.Context, space *seq.Space, key seq.Counter, floor uint64, reach Reach) (uint64, error) {
	r := t.raising(space, key, floor, reach)
	if err := r.check(); err != nil {
		return 0, err
	}
	value, err := r.run(ctx)
	if err == nil {
		err = t.look(ctx, r.read)[r.c.id]
	}
	return value, err
}

// raising is a raise on its way.
type raising struct {
	t     *Table
	c     *Section
	space *seq.Space
	key   seq.Counter
	floor uint64
	reach Reach

	read           looks         // strict: what value was read under
	recorded       bool          // a jump that is too large stands in the log of events
	far            bool          // it is too large, and does not stand there
	charged        bool          // of an exact space: it is in the sum of the hour
	wait           time.Duration // for how long it is, because of the raises of the latest hour; 0 for a jump that is too large by itself
	value, ceiling uint64
}

func (t *Table) raising(space *seq.Space, key seq.Counter, floor uint64, reach Reach) *raising {
	return &raising{t: t, c: t.Section(space.SectionOf(key.Place)), space: space, key: key, floor: floor, reach: reach}
}

// check returns an error if the floor is no number that a key may have.
func (r *raising) check() error {
	if err := seq.CheckFloor("at_least", r.floor); err != nil {
		return fmt.Errorf("raise %s: %w", r.key, err)
	}
	return nil
}

// run waits until it is done.
func (r *raising) run(ctx context.Context) (uint64, error) {
	if r.space.Mode == seq.Exact {
		defer r.t.changed(r.c, r.key.UID)
		return r.t.logged.raise(ctx, r)
	}
	for ; ; r.recorded = true {
		if err := r.t.whenOwned(ctx, r.c, func() (bool, error) { return r.lift(ctx) }); err != nil {
			return 0, err
		}
		if !r.far {
			return r.value, nil
		}
		if !r.reach.Force {
			return 0, r.tooFar()
		}
		if err := r.t.record(ctx, r.c.id, r.key, r.ceiling, r.floor); err != nil {
			return 0, fmt.Errorf("raise %s to %d: %w", r.key, r.floor, err)
		}
	}
}

// lift raises the key if the ceiling is there, or else asks for it. Needs the lock of a cell that is
// owned and leased.
func (r *raising) lift(ctx context.Context) (done bool, err error) {
	c := r.c
	if now, _ := c.table.Get(uint64(r.key.UID)); r.reach.Within > 0 && r.floor > now && r.floor-now > r.reach.Within {
		return true, r.beyondGrant(now)
	}
	if r.floor > c.table.Base() {
		if err := c.admits(r.key); err != nil {
			return true, err
		}
	}
	if r.far = false; !r.covers(ctx) {
		return r.far, nil
	}
	r.value = c.table.Raise(uint64(r.key.UID), r.floor)
	c.moved(uint64(r.key.UID))
	if r.space.Mode == seq.Strict {
		r.read.note(c)
	}
	c.weigh()
	if c.due() {
		r.t.ahead(ctx, c, c.table.High())
	}
	return true, nil
}

// covers reports whether the ceiling is at the floor or above, and asks for that if it may. Needs the
// lock of the cell.
func (r *raising) covers(ctx context.Context) bool {
	if r.ceiling = r.c.confirmed; r.floor <= r.ceiling {
		return true
	}
	r.wait = 0
	if r.far = !r.recorded && r.floor-r.ceiling > r.space.Jump(); !r.far && !r.recorded {
		r.wait = r.t.raises.lift(r.c.id, r.space.Jump(), r.ceiling, r.floor, r.t.clock.Now())
		r.far = r.wait > 0
	}
	if !r.far {
		r.t.ahead(ctx, r.c, r.floor)
	}
	return false
}

func (r *raising) beyondGrant(now uint64) error {
	return fmt.Errorf("raise %s to %d: %w: its number is %d, and this caller may raise it by at most %d (max_jump, or max_raise of the grant)",
		r.key, r.floor, seq.ErrForbidden, now, r.reach.Within)
}

func (r *raising) tooFar() error {
	if r.wait > 0 {
		return fmt.Errorf("raise %s to %d: %w: %s", r.key, r.floor, seq.ErrJump, tooMuch(r.c.id, r.space, r.wait))
	}
	return fmt.Errorf("raise %s to %d: %w: the ceiling of section %d is %d, and space %q lets a raise move it by at most %d; after a crash every uid of the section goes on from there, so more takes force",
		r.key, r.floor, seq.ErrJump, r.c.id, r.ceiling, r.space.Name, r.space.Jump())
}

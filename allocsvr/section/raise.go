package section

import (
	"context"
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
)

// Raise lifts the sequence of uid to at least floor; it is on W stores' disks
// before the answer. Idempotent. seq.ErrUIDMemory: the uid would need a counter, and there
// is no memory for it.
//
// seq.ErrJump: the ceiling of the section would move by more than the space's largest
// jump. It is the ceiling that is measured and not the UID, because after a crash all UIDs
// of the section go on from there. With force it moves all the same, once the log of
// events has a line about it: a crash in between leaves a line too many, never one too few.
func (t *Table) Raise(ctx context.Context, space *seq.Space, uid seq.UID, floor uint64, force bool) (uint64, error) {
	if err := seq.CheckFloor("at_least", floor); err != nil {
		return 0, fmt.Errorf("raise uid %d: %w", uid, err)
	}
	c := t.Cell(space.SectionOf(uid))
	for recorded := false; ; recorded = true {
		var value, ceiling uint64
		far := false
		err := t.whenOwned(ctx, c, func() (bool, error) {
			if floor > c.table.Base() {
				if err := c.admits(uid); err != nil {
					return true, err
				}
			}
			if ceiling = c.confirmed; floor > ceiling {
				if far = !recorded && floor-ceiling > space.Jump(); !far {
					t.ahead(ctx, c, floor)
				}
				return far, nil
			}
			value = c.table.Raise(uint64(uid), floor)
			c.weigh()
			if c.due() {
				t.ahead(ctx, c, c.table.High())
			}
			return true, nil
		})
		if err != nil || !far {
			return value, err
		}
		if !force {
			return 0, fmt.Errorf("raise uid %d to %d: %w: the ceiling of section %d is %d, and space %q lets a raise move it by at most %d; after a crash every uid of the section goes on from there, so more takes force",
				uid, floor, seq.ErrJump, c.id, ceiling, space.Name, space.Jump())
		}
		if err := t.record(ctx, c.id, uid, ceiling, floor); err != nil {
			return 0, fmt.Errorf("raise uid %d to %d: %w", uid, floor, err)
		}
	}
}

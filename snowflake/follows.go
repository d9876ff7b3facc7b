package snowflake

import "fmt"

// Follows tells whether l may replace old, a layout in use. It returns
// ErrLayoutChange where an ID of old could be handed out again.
//
// The rule is: every ID of old must mean the same in l, the same moment, the
// same datacenter, worker and sequence. Then an ID can only be repeated where
// one worker would use one tick twice, which the floors of its windows, kept in
// ticks, forbid across the change as well. It leaves these changes: policies and
// js53; a wider highest field; a datacenter added above all fields, where old
// IDs are of datacenter 0. Any other change of fields, unit or epoch is refused,
// also those that would be harmless under honest clocks.
func (l Layout) Follows(old Layout) error {
	if !l.valid() || !old.valid() {
		return fmt.Errorf("replace layout %q by %q: %w: zero layout", old, l, ErrLayout)
	}
	refuse := func(what string, was, is any) error {
		return fmt.Errorf("replace layout %q by %q: %s was %v, would be %v: %w", old, l, what, was, is, ErrLayoutChange)
	}
	if l.epoch != old.epoch {
		return refuse("epoch", old.epoch, l.epoch)
	}
	if l.unit != old.unit {
		return refuse("unit", old.Unit(), l.Unit())
	}
	for k := kindTime; k < numKinds; k++ {
		switch {
		case old.width[k] == 0:
			// Fields leave no gaps: where all others stay, a new one is on top.
		case l.width[k] < old.width[k]:
			return refuse("bits of "+kindNames[k], old.width[k], l.width[k])
		case l.shift[k] != old.shift[k]:
			return refuse("lowest bit of "+kindNames[k], old.shift[k], l.shift[k])
		}
	}
	return nil
}

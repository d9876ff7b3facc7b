package backup

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Spent lists the sections and tags that have come to their end: they hand out nothing
// more, or less than a step. They are sound, and stay as they are for good. Each line is
// for people, sections before tags.
func Spent(mapping seq.Mapping, states []quorum.RegisterState) []string {
	maxes := make(map[seq.Register]uint64, len(states))
	for _, st := range states {
		maxes[st.Register] = st.Max
	}
	return spent(mapping, maxes)
}

// Spent lists the sections and tags that the new era cannot use; see the function Spent.
func (c Content) Spent() []string {
	maxes := make(map[seq.Register]uint64, len(c.Registers))
	for r, st := range c.Registers {
		maxes[r] = st.Max
	}
	return spent(c.Identity.Mapping, maxes)
}

func spent(mapping seq.Mapping, maxes map[seq.Register]uint64) []string {
	var regs []seq.Register
	for r, m := range maxes {
		if ended(mapping, r, m) {
			regs = append(regs, r)
		}
	}
	slices.SortFunc(regs, func(a, b seq.Register) int {
		return cmp.Or(cmp.Compare(a.Kind(), b.Kind()), cmp.Compare(a, b))
	})
	lines := make([]string, len(regs))
	for i, r := range regs {
		name := r.String()
		if id, ok := r.Section(); ok {
			if space, err := mapping.SpaceOf(id); err == nil {
				name += " of space " + space.Name
			}
		}
		lines[i] = fmt.Sprintf("%s is spent: %d numbers left below 2^53-1", name, uint64(seq.MaxSeq)-min(maxes[r], uint64(seq.MaxSeq)))
	}
	return lines
}

func ended(mapping seq.Mapping, r seq.Register, most uint64) bool {
	if id, ok := r.Section(); ok {
		space, err := mapping.SpaceOf(id)
		if err != nil {
			return false
		}
		_, end := space.Ending(most)
		return end
	}
	return r.Rules().Holds == seq.Reserved && most >= uint64(seq.MaxSeq)
}

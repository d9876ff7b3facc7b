package allocsvr

import (
	"testing"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Segment tags are registers of one cluster: were they served by two Sets, a number would be handed
// out twice.
func TestTagsAreTheRootsAlone(t *testing.T) {
	d := newDivision(t, 2, user16())
	d.finish(d.begin(1, sets.Range{First: 0, Sections: 8}))
	tags := func(f *fleet) (owners int) {
		for _, n := range f.all() {
			for id := range seq.SectionID(16) {
				if mine, err := n.Alloc.mine(id); mine {
					owners++
				} else if err == nil {
					t.Errorf("section %d at %s: it is not the node's, and not said why", id, n.name)
				}
			}
		}
		return owners
	}
	d.until("all tags have an owner in the root, also those of sections that have gone", func() bool { return tags(d.fleets[0]) == 16 })
	if got := tags(d.fleets[1]); got != 0 {
		t.Errorf("%d tags are served outside of the root", got)
	}
}

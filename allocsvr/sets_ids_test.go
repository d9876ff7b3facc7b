package allocsvr

import (
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Worker ids and segment tags are registers of one cluster: were they served by two Sets, an ID
// would be handed out twice.
func TestIDsAndTagsAreTheRootsAlone(t *testing.T) {
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
	for i, f := range d.fleets {
		for _, n := range f.all() {
			err := n.Alloc.idsElsewhere()
			var owner *rpc.NotOwnerError
			switch {
			case i == 0 && err != nil:
				t.Errorf("the root makes no IDs: %v", err)
			case i > 0 && (!errors.As(err, &owner) || owner.Set != sets.RootName || owner.Addr == ""):
				t.Errorf("%s makes IDs, or does not say where they are made: %v", n.name, err)
			}
		}
	}
}

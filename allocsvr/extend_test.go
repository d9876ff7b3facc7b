package allocsvr

import (
	"context"
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// cover has the table know the sections of the mapping, as adding a space does.
func (n *node) cover(t *testing.T, m seq.Mapping) {
	t.Helper()
	_, err := n.routes.Change(context.Background(), func(t *seq.RouteTable) ([]arbiter.Event, error) {
		if !t.Cover(m.Sections()) {
			return nil, arbiter.ErrUnchanged
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A space is added while two nodes serve: one of them hears of it late. Its sections have no
// owner before W stores have them, a node that has not heard takes none and takes none away, and
// the other sections stay where they are.
func TestSectionsOfAnAddedSpaceAreServedOnceEnoughStoresHaveThem(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 4, Step: 100})
	a, b := f.start("a", 2, ""), f.start("b", 2, "")
	f.serving(a, b)
	f.next(7)
	was := f.stores.Mapping
	m, _, err := was.Add(seq.Space{Name: "room", Sections: 6, Step: 50})
	if err != nil {
		t.Fatal(err)
	}
	keys := seq.KeyHashers{"room": {Secret: seq.NewKeySecret()}}
	told := func(i int) {
		t.Helper()
		if err := f.stores.Stores[i].Extend(4, 10); err != nil {
			t.Fatal(err)
		}
	}
	told(0)
	a.cover(t, m)
	if err := a.extend(m, keys); err != nil {
		t.Fatal(err)
	}
	for id := seq.SectionID(4); id < 10; id++ {
		out := a.group.Prepare(t.Context(), a.session, []quorum.PrepareItem{{Register: seq.SectionRegister(id), Round: 1}})[0]
		if !errors.Is(out.Err, seq.ErrUnknownRegister) || out.State == quorum.Won {
			t.Errorf("section %d with one store: %v, %v", id, out.State, out.Err)
		}
	}
	told(2)
	room, err := a.Mapping().Space("room")
	if err != nil {
		t.Fatal(err)
	}
	// The sections that the table gives to b wait, because b does not know the space. The table never gets
	// shorter.
	f.until("a serves what the table gives to it", func() bool {
		given := 0
		for id := seq.SectionID(4); id < 10; id++ {
			if owner, ok := a.routes.Table().Owner(id); ok {
				given++
				if _, owned := a.Section(id).View(); owner.Name == "a" && !owned {
					return false
				}
			}
		}
		return given == 6
	})
	if n := b.Len(); n != 4 {
		t.Errorf("b has %d sections", n)
	}
	if err := b.extend(m, keys); err != nil {
		t.Fatal(err)
	}
	f.stores.Mapping = m
	f.serving(a, b)
	if n := len(b.routes.Table().Sections); n != 10 {
		t.Errorf("the table has %d sections", n)
	}
	for id := range seq.SectionID(10) {
		owners := 0
		for _, n := range []*node{a, b} {
			if v, ok := n.Section(id).View(); ok && v.Owned {
				owners++
			}
			if id >= 4 && n.keyHashers()[n.Section(id).Space().Name].Mark() != keys["room"].Mark() {
				t.Errorf("section %d at %s: keys are hashed by another secret", id, n.name)
			}
		}
		if owners != 1 {
			t.Errorf("section %d has %d owners", id, owners)
		}
	}
	got := 0
	for _, n := range []*node{a, b} {
		for uid := range seq.UID(64) {
			if k := n.Take(t.Context(), room, seq.PlainAll(uid*64), nil); len(k.Faults) == 0 && k.First[0] == 1 {
				got++
			}
		}
	}
	if got != 64 {
		t.Errorf("%d of 64 UIDs got their first number from one of the nodes", got)
	}
	f.next(7)
}

package section

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

// plus returns the table's mapping with a space added.
func (o *owned) plus(s seq.Space) seq.Mapping {
	o.t.Helper()
	m, _, err := o.Mapping().Add(s)
	if err != nil {
		o.t.Fatal(err)
	}
	return m
}

func TestASpaceThatIsAddedIsServedAndNothingOfTheOthersMoves(t *testing.T) {
	o := newOwned(t)
	user, cell := &o.Mapping().Spaces[0], o.Section(0)
	o.must(3)
	for i, s := range []seq.Space{{Name: "room", Sections: 3, Step: 10}, {Name: "pts", Sections: 1, Step: 20, Mode: seq.UniqueOnly}} {
		if err := o.Extend(o.plus(s)); err != nil {
			t.Fatal(err)
		}
		last := seq.SectionID(o.Len() - 1)
		added := &o.Mapping().Spaces[i+1]
		if c := o.Section(last); c.ID() != last || c.Space() != added || c.State() != Absent {
			t.Errorf("section %d is %d of space %s, %s", last, c.ID(), c.Space().Name, c.State())
		}
		if err := o.refused(o.Begin(added, seq.PlainAll(5), nil)); !errors.Is(err, seq.ErrNotOwner) {
			t.Errorf("before it is owned: %v", err)
		}
	}
	if got := o.must(1); got != 4 || o.Section(0) != cell || &o.Mapping().Spaces[0] != user {
		t.Errorf("got %d, or the section or its space has moved", got)
	}
	for id := range seq.SectionID(o.Len()) {
		if id > 0 {
			o.ownAt(id, 100, 200)
		}
		if o.Section(id).ID() != id {
			t.Errorf("section %d is %d", id, o.Section(id).ID())
		}
	}
	room, err := o.Mapping().Space("room")
	if err != nil {
		t.Fatal(err)
	}
	if got := o.Take(t.Context(), room, seq.PlainAll(5, 700, 70000), nil); len(got.Faults) > 0 || got.First[0] != 101 {
		t.Errorf("got %+v", got)
	}
	if n := o.stats.numbers[1].Load(); n != 3 {
		t.Errorf("%d numbers of the space are counted, want 3", n)
	}
	if owned, n := o.Owned(), len(o.Views()); len(owned) != 5 || n != 5 || owned[4] != 4 {
		t.Errorf("owned are %v, %d are shown", owned, n)
	}
}

func TestATableRefusesAMappingThatIsNotItsOwnWithSpacesAdded(t *testing.T) {
	o := newOwned(t)
	room, pts := o.plus(seq.Space{Name: "room"}), o.plus(seq.Space{Name: "pts"})
	if err := o.Extend(room); err != nil {
		t.Fatal(err)
	}
	was := o.layout.Load()
	if err := o.Extend(pts); !errors.Is(err, seq.ErrBadMapping) {
		t.Errorf("another space: %v", err)
	}
	if err := errors.Join(o.Extend(room), o.Extend(seq.Mapping{Spaces: room.Spaces[:1]})); err != nil || o.layout.Load() != was {
		t.Errorf("the same, and the mapping of before: %v", err)
	}
}

// Spaces are added while numbers are taken, sections are counted and looked at: for the race
// detector, and every number is the next one.
func TestSpacesAreAddedWhileNumbersAreTaken(t *testing.T) {
	o := newOwned(t)
	o.c.confirm(o.epoch, 1<<40)
	user := &o.Mapping().Spaces[0]
	var stop atomic.Bool
	var wg sync.WaitGroup
	taken := uint64(0)
	wg.Go(func() {
		for !stop.Load() {
			got := o.Begin(user, seq.PlainAll(1), nil).Out()
			if taken++; len(got.Faults) > 0 || got.First[0] != taken {
				t.Errorf("take %d: got %+v", taken, got)
				return
			}
		}
	})
	wg.Go(func() {
		for !stop.Load() {
			n := o.Len()
			if c := o.Section(seq.SectionID(n - 1)); int(c.ID()) != n-1 {
				t.Errorf("section %d of %d is %d", n-1, n, c.ID())
			}
			o.Standing(func(seq.SectionID) bool { return false })
			o.Totals()
		}
	})
	for i := range 200 {
		if err := o.Extend(o.plus(seq.Space{Name: "s" + string(rune('a'+i/16)) + string(rune('a'+i%16)), Sections: uint32(1 + i%5)})); err != nil {
			t.Fatal(err)
		}
	}
	stop.Store(true)
	wg.Wait()
}

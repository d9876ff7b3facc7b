package section

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

// near takes of uids 1, 2 and 1.
func (o *owned) near(counts ...uint32) []uint64 {
	o.t.Helper()
	first := make([]uint64, 3)
	if o.TakeLocal(o.c.space, []seq.UID{1, 2, 1}, counts, first) {
		o.t.Error("unordered under a lease, or where nothing may be")
	}
	return first
}

func TestNearIsWhatNeedsNoWaiting(t *testing.T) {
	o := newOwned(t)
	expect := func(what string, got []uint64, want ...uint64) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %d, want %d", what, got, want)
		}
	}
	expect("owned", o.near(), 1, 1, 2)
	expect("counts", o.near(10, 1, 5), 3, 2, 13)
	expect("beyond what is confirmed", o.near(ownerStep, 1, 1), 0, 3, 0) // what follows the first one waits, too
	if last := o.must(1); last != 18 {
		t.Errorf("a Take behind it got %d, want 18", last)
	}
	o.clock.Advance(ownerLease)
	expect("without a lease", o.near(), 0, 0, 0)
	o.hold.End = o.clock.Now() + ownerLease
	o.losses()
	expect("with one again", o.near(), 19, 4, 20)
	o.c.Drop(o.epoch, "")
	expect("not owned", o.near(), 0, 0, 0)
}

func TestNothingIsNearInAStrictSpace(t *testing.T) {
	o := newOwnedOf(t, seq.Space{Name: "strict", Sections: 1, Step: ownerStep, Mode: seq.Strict})
	if got := o.near(); !slices.Equal(got, []uint64{0, 0, 0}) {
		t.Errorf("got %d", got)
	}
	if first := o.take(1).out.First[0]; first != 1 {
		t.Errorf("the first number is %d: some were taken and not given", first)
	}
}

func TestNearIsUnorderedWithoutALeaseWhereThatMayBe(t *testing.T) {
	o := newOwnedOf(t, seq.Space{Name: "unique", Sections: 1, Step: ownerStep, Mode: seq.UniqueOnly})
	o.clock.Advance(ownerLease)
	first := make([]uint64, 1)
	if unordered := o.TakeLocal(o.c.space, []seq.UID{1}, nil, first); !unordered || first[0] != 1 {
		t.Errorf("got %d, unordered %t", first, unordered)
	}
}

func TestATakeThatIsUsedAgainAnswersAsANewOne(t *testing.T) {
	for _, mode := range []seq.Mode{seq.Ordered, seq.Strict, seq.UniqueOnly} {
		space := seq.Space{Name: "user", Sections: 3, Step: ownerStep, Mode: mode}
		one, other, draw := newOwnedOf(t, space), newOwnedOf(t, space), rand.New(rand.NewPCG(9, 2))
		for range 300 {
			uids, counts := make([]seq.UID, 1+draw.IntN(50)), []uint32(nil)
			few := draw.IntN(2) == 0
			for i := range uids {
				if uids[i] = seq.UID(draw.Uint64N(2000)); few {
					counts = append(counts, 1+draw.Uint32N(3))
				}
			}
			got, want := make([]uint64, len(uids)), make([]uint64, len(uids))
			unordered := one.TakeLocal(one.c.space, uids, counts, got)
			alone := Taking{}
			if mode != seq.Strict {
				alone.Set(other.Table, other.c.space, seq.PlainAll(uids...), counts)
				alone.Pass(other.BatchClock())
				copy(want, alone.out.First)
			}
			if !slices.Equal(got, want) || unordered != alone.out.Unordered {
				t.Fatalf("mode %v: got %d, %t, want %d, %t", mode, got, unordered, want, alone.out.Unordered)
			}
		}
	}
}

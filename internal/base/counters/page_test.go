package counters

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// read reads a whole table by pages of so many blocks.
func read(t *testing.T, table *Table, blocks int) map[uint64]uint64 {
	t.Helper()
	out := map[uint64]uint64{}
	var last uint64
	for from, begun := uint64(0), false; from > 0 || !begun; begun = true {
		p := table.Page(from, blocks)
		for i, uid := range p.UIDs {
			if begun && uid <= last || uid < from || p.Next > 0 && uid >= p.Next {
				t.Fatalf("page from %d to %d has uid %d after %d", from, p.Next, uid, last)
			}
			out[uid], last, begun = p.Values[i], uid, true
		}
		from = p.Next
	}
	return out
}

func TestPagesHaveEveryCounterOnceByRisingUID(t *testing.T) {
	for _, spread := range []uint64{1, 20, 64, 100_000, 1 << 60} {
		table, want := New(7), map[uint64]uint64{}
		for range 2000 {
			uid, value := rand.Uint64()%2000*spread, 8+rand.Uint64()%1000
			if table.Raise(uid, value) == value {
				want[uid] = value
			}
		}
		for _, blocks := range []int{1, 3, 1024} {
			if diff := cmp.Diff(want, read(t, table, blocks)); diff != "" {
				t.Fatalf("spread %d, %d blocks a page: (-want +got)\n%s", spread, blocks, diff)
			}
		}
	}
	if got := read(t, New(5), 3); len(got) != 0 {
		t.Errorf("an empty table has %v", got)
	}
}

func TestALiftLeavesNoUIDBelowIt(t *testing.T) {
	for _, to := range []uint64{0, 100, 5000, 10_000, 20_000} {
		table, before := New(50), map[uint64]uint64{}
		for range 3000 {
			uid := rand.Uint64() % 5000
			before[uid] = table.Raise(uid, 51+rand.Uint64()%10_000)
		}
		table.Lift(to)
		if got := table.Base(); got != max(to, 50) {
			t.Errorf("lifted to %d: base %d", to, got)
		}
		most := table.Base()
		for _, uid := range append(slices.Collect(maps.Keys(before)), 5001) {
			got, _ := table.Get(uid)
			if want := max(before[uid], to, 50); got != want {
				t.Fatalf("lifted to %d: uid %d stands at %d, want %d", to, uid, got, want)
			}
			most = max(most, got)
		}
		if table.High() != most {
			t.Errorf("lifted to %d: high %d, want %d", to, table.High(), most)
		}
	}
}

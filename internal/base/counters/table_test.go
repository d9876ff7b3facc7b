package counters

import (
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const ceiling = 1<<53 - 1

// checkInvariants verifies the formulas that stand at the fields of Table.
func checkInvariants(t rapid.TB, tab *Table) {
	t.Helper()
	var blocks, uids, live int
	high := tab.base
	pages := map[int]bool{}
	for i := range tab.slots {
		s := &tab.slots[i]
		if s.where == 0 {
			continue
		}
		blocks++
		n := bits.OnesCount64(s.bitmap())
		uids += n
		if tab.slots.find(s.block) != s {
			t.Errorf("block %d is not found where it is", s.block)
		}
		switch s.form() {
		case packed:
			live += room(n)
			if n > packedMax || s.pos()+room(n) > len(tab.words) {
				t.Errorf("packed block %d: %d counters at %d of %d words", s.block, n, s.pos(), len(tab.words))
			}
		case paged:
			if pages[s.pos()] {
				t.Errorf("page %d belongs to two blocks", s.pos())
			}
			pages[s.pos()] = true
		}
		tab.each(s, func(uid, v uint64) bool {
			if v <= tab.floor {
				t.Errorf("uid %d stands at %d, floor is %d", uid, v, tab.floor)
			}
			high = max(high, v)
			return true
		})
	}
	if blocks != tab.blocks || uids != tab.uids || high != tab.high {
		t.Errorf("counted %d blocks, %d uids, high %d; table says %d, %d, %d", blocks, uids, high, tab.blocks, tab.uids, tab.high)
	}
	for at, p := range tab.pages {
		if pages[at] != (p != nil) {
			t.Errorf("page %d: used %v, there %v", at, pages[at], p != nil)
		}
	}
	if tab.floor > tab.base || blocks == 0 && tab.floor != tab.base {
		t.Errorf("floor %d, base %d with %d blocks", tab.floor, tab.base, blocks)
	}
	if live+tab.holes != len(tab.words) {
		t.Errorf("%d live words and %d holes in %d words", live, tab.holes, len(tab.words))
	}
	if 5*tab.blocks > 4*len(tab.slots) {
		t.Errorf("%d blocks in %d slots", tab.blocks, len(tab.slots))
	}
}

// model is the same thing done plainly.
type model struct {
	base   uint64
	values map[uint64]uint64
	times  map[uint64]uint32 // by block
}

func newModel(base uint64) *model {
	return &model{base, map[uint64]uint64{}, map[uint64]uint32{}}
}

func (m *model) get(uid uint64) (uint64, bool) {
	if v, ok := m.values[uid]; ok {
		return v, true
	}
	return m.base, false
}

func (m *model) take(uid, n, ceiling uint64, now uint32) (uint64, uint64, bool) {
	cur, _ := m.get(uid)
	last, carry := bits.Add64(cur, n, 0)
	if n == 0 || carry != 0 || last > ceiling {
		return 0, 0, false
	}
	m.values[uid] = last
	m.touch(uid, now)
	return cur + 1, last, true
}

func (m *model) raise(uid, atLeast uint64) uint64 {
	cur, _ := m.get(uid)
	if atLeast > cur {
		m.values[uid] = atLeast
		return atLeast
	}
	return cur
}

func (m *model) touch(uid uint64, at uint32) {
	if _, ok := m.values[uid]; ok {
		m.times[uid/64] = max(m.times[uid/64], at)
	}
}

func (m *model) lastTaken(uid uint64) (uint32, bool) {
	if _, ok := m.values[uid]; !ok || m.times[uid/64] == 0 {
		return 0, false
	}
	return m.times[uid/64], true
}

// fold drops the blocks that were last taken from before before, of which no counter is
// above highest.
func (m *model) fold(before uint32, highest uint64) {
	high := map[uint64]uint64{}
	for uid, v := range m.values {
		high[uid/64] = max(high[uid/64], v)
	}
	for uid := range m.values {
		if b := uid / 64; m.times[b] < before && high[b] <= highest {
			delete(m.values, uid)
			m.base = max(m.base, high[b])
		}
	}
	maps.DeleteFunc(m.times, func(b uint64, at uint32) bool { return at < before && high[b] <= highest })
}

func (m *model) check(t rapid.TB, tab *Table) {
	t.Helper()
	if diff := cmp.Diff(m.values, maps.Collect(tab.All())); diff != "" {
		t.Fatalf("table differs from the model (-model +table):\n%s", diff)
	}
	high := m.base
	for uid, v := range m.values {
		high = max(high, v)
		if got, ok := tab.LastTaken(uid); true {
			if want, wantOK := m.lastTaken(uid); got != want || ok != wantOK {
				t.Fatalf("LastTaken(%d) = %d, %v, want %d, %v", uid, got, ok, want, wantOK)
			}
		}
	}
	if tab.Len() != len(m.values) || tab.Base() != m.base || tab.High() != high {
		t.Fatalf("Len, Base, High = %d, %d, %d, want %d, %d, %d",
			tab.Len(), tab.Base(), tab.High(), len(m.values), m.base, high)
	}
	checkInvariants(t, tab)
}

func TestATableAnswersLikeAPlainMap(t *testing.T) {
	uids := rapid.OneOf(
		rapid.Uint64Range(0, 150),
		rapid.Uint64Range(math.MaxUint64-70, math.MaxUint64),
		rapid.Uint64(),
	)
	values := rapid.OneOf(
		rapid.Uint64Range(0, 300),
		rapid.Uint64Range(ceiling-100, ceiling+1),
		rapid.Uint64Range(math.MaxUint64-100, math.MaxUint64),
		rapid.Uint64(),
	)
	times := rapid.OneOf(rapid.Uint32Range(0, 50), rapid.Uint32())
	rapid.Check(t, func(t *rapid.T) {
		base := values.Draw(t, "base")
		tab, m := New(base), newModel(base)
		take := func(uid, n, ceil uint64, now uint32) {
			f, l, ok := tab.Take(uid, n, ceil, now)
			wf, wl, wok := m.take(uid, n, ceil, now)
			if f != wf || l != wl || ok != wok {
				t.Fatalf("Take(%d, %d, %d) = %d, %d, %v, want %d, %d, %v", uid, n, ceil, f, l, ok, wf, wl, wok)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { m.check(t, tab) },
			"take": func(t *rapid.T) {
				take(uids.Draw(t, "uid"), values.Draw(t, "n"), values.Draw(t, "ceiling"), times.Draw(t, "now"))
			},
			"take one of many": func(t *rapid.T) {
				for _, uid := range rapid.SliceOfN(uids, 1, 50).Draw(t, "uids") {
					take(uid, 1, math.MaxUint64, 7)
				}
			},
			"take of many that were found before": func(t *rapid.T) {
				many := rapid.SliceOfN(uids, 1, 20).Draw(t, "uids")
				refs := make([]Ref, len(many))
				for i, uid := range many {
					tab.Prefetch(uid)
					refs[i] = tab.Find(uid)
					refs[i].Fetch()
				}
				good := true
				for i, uid := range many {
					if !good {
						refs[i] = tab.Find(uid)
					}
					good = good && refs[i].Known()
					f, l, ok := tab.TakeAt(refs[i], uid, 1, math.MaxUint64, 7)
					wf, wl, wok := m.take(uid, 1, math.MaxUint64, 7)
					if f != wf || l != wl || ok != wok {
						t.Fatalf("TakeAt(%d) = %d, %d, %v, want %d, %d, %v", uid, f, l, ok, wf, wl, wok)
					}
				}
			},
			"get": func(t *rapid.T) {
				uid := uids.Draw(t, "uid")
				v, exact := tab.Get(uid)
				if wv, wexact := m.get(uid); v != wv || exact != wexact {
					t.Fatalf("Get(%d) = %d, %v, want %d, %v", uid, v, exact, wv, wexact)
				}
			},
			"raise": func(t *rapid.T) {
				uid, v := uids.Draw(t, "uid"), values.Draw(t, "value")
				if got, want := tab.Raise(uid, v), m.raise(uid, v); got != want {
					t.Fatalf("Raise(%d, %d) = %d, want %d", uid, v, got, want)
				}
			},
			"touch": func(t *rapid.T) {
				uid, at := uids.Draw(t, "uid"), times.Draw(t, "at")
				tab.Touch(uid, at)
				m.touch(uid, at)
			},
			"encode and decode": func(t *rapid.T) {
				back, err := Decode(tab.AppendBinary(nil))
				if err != nil {
					t.Fatal(err)
				}
				tab = back
			},
			"fold": func(t *rapid.T) {
				before, highest, slots := times.Draw(t, "before"), values.Draw(t, "highest"), rapid.IntRange(1, 100).Draw(t, "slots")
				foldAll(tab, slots, before, highest)
				m.fold(before, highest)
			},
			"rebase": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "one in ten") != 0 {
					t.Skip()
				}
				base := values.Draw(t, "base")
				tab.Rebase(base)
				m = newModel(base)
			},
		})
	})
}

func TestBlocksFilledInRandomOrderPassThroughAllFormsUnharmed(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	const blocks = 200
	tab, m := New(1000), newModel(1000)
	var order []uint64
	for i := range uint64(blocks * 64) {
		order = append(order, mix(i/64)<<6|i%64)
	}
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for i, uid := range order {
		n, now := 1+rng.Uint64N(5), uint32(rng.Uint64N(1000))
		f, l, ok := tab.Take(uid, n, ceiling, now)
		wf, wl, wok := m.take(uid, n, ceiling, now)
		if f != wf || l != wl || ok != wok {
			t.Fatalf("Take(%d, %d) = %d, %d, %v, want %d, %d, %v", uid, n, f, l, ok, wf, wl, wok)
		}
		if i%997 == 0 {
			m.check(t, tab)
		}
	}
	m.check(t, tab)
	if len(tab.pages) != blocks || cap(tab.words) != 0 {
		t.Errorf("full blocks: %d pages, %d words, want %d and none", len(tab.pages), cap(tab.words), blocks)
	}
}

func TestAllYieldsRisingUIDsAndStopsWhenTold(t *testing.T) {
	tab := New(5)
	for _, uid := range []uint64{900, 3, math.MaxUint64, 0, 64, 1 << 40, 65} {
		tab.Raise(uid, 6)
	}
	var got []uint64
	for uid := range tab.All() {
		got = append(got, uid)
	}
	want := []uint64{0, 3, 64, 65, 900, 1 << 40, math.MaxUint64}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("All (-want +got):\n%s", diff)
	}
	got = nil
	for uid := range tab.All() {
		if got = append(got, uid); len(got) == 3 {
			break
		}
	}
	if !slices.Equal(got, want[:3]) {
		t.Errorf("All stopped after three: %d, want %d", got, want[:3])
	}
}

func TestARefusedTakeChangesNothing(t *testing.T) {
	tab := New(10)
	tab.Take(1, 5, ceiling, 100)
	before := tab.AppendBinary(nil)
	for _, c := range []struct{ uid, n, ceiling uint64 }{
		{1, 0, ceiling},              // nothing asked for
		{1, 6, 20},                   // one above
		{1, 1, 14},                   // ceiling below the current value
		{1, math.MaxUint64, ceiling}, // would wrap to below
		{1, math.MaxUint64, math.MaxUint64},
		{2, 11, 20}, // not in the table
		{2, 1, 9},
		{64, 1, 0},
	} {
		if f, l, ok := tab.Take(c.uid, c.n, c.ceiling, 200); ok || f != 0 || l != 0 {
			t.Errorf("Take(%d, %d, %d) = %d, %d, %v, want a refusal", c.uid, c.n, c.ceiling, f, l, ok)
		}
	}
	if after := tab.AppendBinary(nil); !slices.Equal(before, after) {
		t.Errorf("table changed from %x to %x", before, after)
	}
	if f, l, ok := tab.Take(1, 5, 20, 200); !ok || f != 16 || l != 20 {
		t.Errorf("Take up to the ceiling = %d, %d, %v, want 16, 20, true", f, l, ok)
	}
}

func TestARaiseToTheBaseDoesNotMakeAUIDExact(t *testing.T) {
	tab := New(10)
	if got := tab.Raise(1, 10); got != 10 || tab.Len() != 0 {
		t.Errorf("Raise to base = %d with %d uids, want 10 with none", got, tab.Len())
	}
	if got := tab.Raise(1, 11); got != 11 || tab.Len() != 1 {
		t.Errorf("Raise above base = %d with %d uids, want 11 with one", got, tab.Len())
	}
	if at, ok := tab.LastTaken(1); ok {
		t.Errorf("LastTaken after Raise = %d, want unknown", at)
	}
}

func TestTakingFromKnownUIDsDoesNotAllocate(t *testing.T) {
	for name, perBlock := range map[string]uint64{"single": 1, "packed": 9, "paged": 50} {
		t.Run(name, func(t *testing.T) {
			tab := New(0)
			var uids []uint64
			for i := range 100 * perBlock {
				uids = append(uids, i/perBlock*64+i%perBlock)
				tab.Take(uids[i], 1, ceiling, 1)
			}
			i := 0
			if got := testing.AllocsPerRun(1000, func() {
				tab.Take(uids[i%len(uids)], 1, ceiling, 2)
				tab.Get(uids[i%len(uids)])
				i++
			}); got != 0 {
				t.Errorf("%v allocations a take, want 0", got)
			}
		})
	}
}

func TestACloneSharesNothingWithItsTable(t *testing.T) {
	tab := New(5)
	for i := range uint64(200) { // of all forms, and beside some that were folded
		tab.Take(scatter(i%3)<<blockBits|i%blockSize, 1, ceiling, 1)
		tab.Take(scatter(100+i%7)<<blockBits|i%blockSize%5, 1, ceiling, 1000)
		tab.Take(scatter(200+i)<<blockBits, 1, ceiling, 1000)
	}
	foldAll(tab, 64, 10, ceiling)
	for i := range uint64(40) {
		tab.Take(7<<blockBits|i, 1, ceiling, 1000)
	}
	before := tab.AppendBinary(nil)
	c := tab.Clone()
	checkInvariants(t, c)
	if got := c.AppendBinary(nil); !slices.Equal(got, before) {
		t.Errorf("the clone encodes as %x, want %x", got, before)
	}
	for uid, v := range tab.All() {
		c.Raise(uid, v+1)
		c.Raise(^uid, 9)
	}
	if got := tab.AppendBinary(nil); !slices.Equal(got, before) {
		t.Errorf("after changes of the clone the table encodes as %x, want %x", got, before)
	}
	if c.Raise(3, 1<<40); tab.High() >= 1<<40 {
		t.Error("a raise of the clone lifts the table")
	}
}

package counters

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// foldAll folds a whole table in pieces of so many slots.
func foldAll(tab *Table, slots int, before uint32, highest uint64) (blocks int, least uint64) {
	least = math.MaxUint64
	for from := 0; ; {
		f := tab.Fold(from, slots, before, highest)
		blocks, least = blocks+f.Blocks, min(least, f.Least)
		if from = f.Next; from < 0 {
			tab.Shrink()
			return blocks, least
		}
	}
}

// TestNoUIDRepeatsOrGoesBackOverFoldsAndHandOvers knows of each UID only the highest
// number that it ever had.
func TestNoUIDRepeatsOrGoesBackOverFoldsAndHandOvers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uids := rapid.OneOf(rapid.Uint64Range(0, 200), rapid.Uint64Range(1<<40, 1<<40+3000))
		tab, had := New(rapid.Uint64Range(0, 50).Draw(t, "base")), map[uint64]uint64{}
		now := uint32(100)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				checkInvariants(t, tab)
				for uid, last := range had {
					if value, exact := tab.Get(uid); value < last || exact && value != last {
						t.Fatalf("uid %d had %d and reads as %d, exact %v", uid, last, value, exact)
					}
				}
			},
			"take": func(t *rapid.T) {
				for _, uid := range rapid.SliceOfN(uids, 1, 40).Draw(t, "uids") {
					value, exact := tab.Get(uid)
					n := rapid.Uint64Range(1, 300).Draw(t, "n")
					first, last, ok := tab.Take(uid, n, ceiling, now)
					if !ok || first <= had[uid] || last != first+n-1 || exact && first != value+1 {
						t.Fatalf("uid %d had %d: got %d to %d, %v, of %d", uid, had[uid], first, last, ok, n)
					}
					had[uid] = last
				}
			},
			"raise": func(t *rapid.T) {
				uid, to := uids.Draw(t, "uid"), rapid.Uint64Range(0, 2000).Draw(t, "to")
				if value := tab.Raise(uid, to); value < to || value < had[uid] {
					t.Fatalf("uid %d had %d: raised to %d it stands at %d", uid, had[uid], to, value)
				} else if _, exact := tab.Get(uid); exact {
					had[uid] = value
				}
			},
			"time passes": func(t *rapid.T) { now += rapid.Uint32Range(1, 10).Draw(t, "seconds") },
			"fold": func(t *rapid.T) {
				highest := rapid.Uint64Range(0, 3000).Draw(t, "highest")
				before, kept := now-rapid.Uint32Range(0, 20).Draw(t, "age"), tab.Len()
				base, high := tab.Base(), tab.High()
				blocks, least := foldAll(tab, rapid.IntRange(1, 50).Draw(t, "slots"), before, highest)
				if tab.Base() > max(base, highest) || tab.High() != high || least <= highest || (blocks == 0) != (tab.Len() == kept) {
					t.Fatalf("%d blocks: base from %d to %d, high from %d to %d, least %d, %d of %d uids; highest was %d",
						blocks, base, tab.Base(), high, tab.High(), least, tab.Len(), kept, highest)
				}
			},
			"half a fold": func(t *rapid.T) { tab.Fold(0, rapid.IntRange(0, 9).Draw(t, "slots"), now, ceiling) },
			"hand over": func(t *rapid.T) {
				back, err := Decode(tab.AppendBinary(nil))
				if err != nil {
					t.Fatal(err)
				}
				if back.Base() != tab.Base() || back.High() != tab.High() {
					t.Fatalf("base %d, high %d came as %d, %d", tab.Base(), tab.High(), back.Base(), back.High())
				}
				tab = back
			},
		})
	})
}

func TestAFoldGivesTheMemoryOfAFloodBackAndSparesWhatIsInUse(t *testing.T) {
	for _, p := range populations() {
		tab := New(0)
		const flood, known = 1 << 15, 100
		for i := range uint64(flood) {
			tab.Take(p.uid(i)|1<<63, 1, ceiling, 1000)
		}
		var uids []uint64
		for i := range uint64(known) {
			uids = append(uids, i<<blockBits|i%64)
			tab.Take(uids[i], 500, ceiling, 1000)
			tab.Take(uids[i], 1, ceiling, 2000)
		}
		full := tab.Bytes()
		blocks, least := foldAll(tab, 512, 1500, 10)
		if blocks == 0 || least != math.MaxUint64 || tab.Len() != known || tab.Base() != 1 {
			t.Errorf("%s: %d blocks folded, least %d, %d uids left, base %d; want %d left and base 1", p.name, blocks, least, tab.Len(), tab.Base(), known)
		}
		if left := tab.Bytes(); left > full/20 {
			t.Errorf("%s: %d of %d bytes left", p.name, left, full)
		}
		for _, uid := range uids {
			if first, _, ok := tab.Take(uid, 1, ceiling, 2001); !ok || first != 502 {
				t.Errorf("%s: uid %d in use goes on with %d, %v, want 502", p.name, uid, first, ok)
			}
		}
		if first, _, _ := tab.Take(p.uid(0)|1<<63, 1, ceiling, 2001); first != 2 {
			t.Errorf("%s: a folded uid goes on with %d, want 2", p.name, first)
		}
		checkInvariants(t, tab)
	}
}

func TestACounterBelowTheBaseGoesOnFromItsOwnNumber(t *testing.T) {
	tab := New(10)
	tab.Take(1, 5, ceiling, 100)        // at 15, in use
	tab.Take(1<<20, 1000, ceiling, 50)  // at 1010, cold
	tab.Take(1<<30, 90000, ceiling, 50) // at 90010, cold and far above
	if blocks, least := foldAll(tab, 1, 100, 5000); blocks != 1 || least != 90010 {
		t.Errorf("folded %d blocks, the least spared stands at %d, want 1 and 90010", blocks, least)
	}
	tab, _ = Decode(tab.AppendBinary(nil))
	if value, exact := tab.Get(1 << 20); value != 1010 || exact {
		t.Errorf("a folded uid reads as %d, exact %v, want 1010 as an upper bound", value, exact)
	}
	if value, exact := tab.Get(1); value != 15 || !exact {
		t.Errorf("a uid in use reads as %d, exact %v, want exactly 15", value, exact)
	}
	if first, _, _ := tab.Take(1, 1, ceiling, 101); first != 16 {
		t.Errorf("a uid in use goes on with %d, want 16", first)
	}
	if first, _, _ := tab.Take(1<<20, 1, ceiling, 101); first != 1011 {
		t.Errorf("a folded uid goes on with %d, want 1011", first)
	}
	if got := tab.Raise(1, 500); got != 500 {
		t.Errorf("a uid below the base is raised to %d, want 500", got)
	}
}

func BenchmarkFold(b *testing.B) {
	const n = 20_000 // as 80 million random UIDs over 4,096 sections
	for b.Loop() {
		b.StopTimer()
		tab := New(0)
		for range n {
			tab.Take(rand.Uint64(), 1, ceiling, 1000)
		}
		b.StartTimer()
		foldAll(tab, 512, 2000, 1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/block")
}

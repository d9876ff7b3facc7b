package sim

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// TestSetsBreakNoPromise is a short look at runs with two Sets, between which sections move.
func TestSetsBreakNoPromise(t *testing.T) {
	runs := 3
	if testing.Short() {
		runs = 1
	}
	var total Report
	for seed := range uint64(runs) {
		o := OptionsOf(seed + 1).On(SetsEngine)
		o.Length = 100 * time.Second
		r := simulate(t, o)
		report(t, r)
		total.Add(r)
	}
	t.Logf("%v", total)
	if total.Stats.Numbers == 0 || total.Stats.Orders["move"] == 0 || total.Stats.Orders["take back move"] == 0 {
		t.Errorf("a run in which nothing happens proves nothing: %v", total)
	}
}

// TestRestoredSetsBreakNoPromise is a short look at runs with two Sets of which the stores are lost
// and restored.
func TestRestoredSetsBreakNoPromise(t *testing.T) {
	seeds := []uint64{20002, 20138}
	if testing.Short() {
		seeds = seeds[:1]
	}
	var total Report
	for _, seed := range seeds {
		o := OptionsOf(seed).On(SetsEngine)
		o.Care, o.Length = true, 120*time.Second
		r := simulate(t, o)
		report(t, r)
		total.Add(r)
	}
	t.Logf("%v", total)
	if total.Stats.Orders["restore"] == 0 || total.Stats.Orders["settle"] == 0 {
		t.Errorf("nothing was restored and settled: %v", total)
	}
}

func TestForgedPlacesAreJudged(t *testing.T) {
	const first = seq.SectionID(0)
	run := func(state sets.State, move uint64) sets.Run {
		return sets.Run{Range: sets.Range{First: first, Sections: 1}, Place: sets.Place{State: state, Move: move}}
	}
	has := func(w *world, version uint64, stores int, runs ...sets.Run) {
		r := sets.Record{Runs: runs}
		if w.set > 0 {
			r = sets.NewRecord(w.setName(), []string{"a1"})
			r.Runs = runs
		}
		body, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range w.hosts.of(storeHost)[:stores] {
			w.check.places.accepted(h, seq.RecordRegister, acceptor.State{Accepted: epoch(version, 1), Payload: append(binary.BigEndian.AppendUint64(nil, version), body...)})
		}
	}
	for _, row := range []struct {
		name  string
		facts func(root, b *world)
		want  string
	}{
		{"a section of one Set", func(root, b *world) { has(root, 1, 2); has(b, 1, 2) }, ""},
		{"a section of two Sets", func(root, b *world) { has(root, 1, 2); has(b, 1, 2, run(sets.Active, 1)) }, "I11"},
		{"activated at one store of three", func(root, b *world) { has(root, 1, 2); has(b, 1, 1, run(sets.Active, 1)) }, ""},
		{"sealed at one store of three", func(root, b *world) {
			has(root, 1, 2)
			has(root, 2, 1, run(sets.Sealed, 1))
			has(b, 1, 2, run(sets.Active, 1))
		}, "I11"},
		{"a move", func(root, b *world) {
			has(root, 1, 2)
			has(root, 2, 2, run(sets.Sealed, 1))
			has(b, 1, 2, run(sets.Active, 1))
			b.check.places.serves(b.hosts.of(allocHost)[0], first)
			root.check.places.serves(root.hosts.of(allocHost)[0], first) // it has not been stopped yet
		}, ""},
		{"it is served where it is not", func(root, b *world) {
			has(root, 1, 2)
			has(b, 1, 2)
			b.check.places.serves(b.hosts.of(allocHost)[0], first)
		}, "I11"},
		{"the map knows", func(root, b *world) {
			has(root, 1, 2, run(sets.Moved, 1))
			has(b, 1, 2, run(sets.Active, 1))
			root.check.places.agree(sets.Map{Sets: []sets.Set{{}, {}}, In: []uint16{1}})
		}, ""},
		{"the map does not know", func(root, b *world) {
			has(root, 1, 2, run(sets.Moved, 1))
			has(b, 1, 2, run(sets.Active, 1))
			root.check.places.agree(sets.Map{})
		}, "map"},
	} {
		t.Run(row.name, func(t *testing.T) {
			kinds := map[string]bool{}
			bubble.Test(t, func(*testing.T) {
				o := OptionsOf(1).On(SetsEngine)
				o.Stores, o.Beyond, o.Care = 3, false, false
				w := newWorld(o, "")
				defer w.end()
				w.assemble()
				w.check.places.joined.Store(true)
				row.facts(w.sets[0], w.sets[1])
				for _, v := range w.check.violations() {
					kinds[v.Kind] = true
				}
			})
			if len(kinds) > 1 || row.want == "" && len(kinds) > 0 || row.want != "" && !kinds[row.want] {
				t.Errorf("breaks %v, want %q", kinds, row.want)
			}
		})
	}
}

package sets

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
)

var states = []State{Active, Inactive, Sealed, Moved, Refused, Limbo}

// The test tries every step by move 7 from every place of an older move, of move 7, and of a later move.
func TestEveryStepFromEveryPlace(t *testing.T) {
	type from struct {
		state State
		move  uint64
	}
	may := map[Op][]from{
		Seal:     {{Active, 5}},
		Activate: {{Inactive, 5}, {Sealed, 5}, {Moved, 5}, {Refused, 5}},
		Refuse:   {{Inactive, 5}, {Sealed, 5}, {Moved, 5}, {Refused, 5}},
		Cancel:   {{Active, 5}},
		Reopen:   {{Sealed, 7}},
		Finish:   {{Sealed, 7}},
		Keep:     {{Limbo, 5}, {Limbo, 7}, {Limbo, 9}},
		Give:     {{Limbo, 5}, {Limbo, 7}, {Limbo, 9}},
	}
	done := map[Op][]from{
		Seal: {{Sealed, 7}, {Moved, 7}}, Activate: {{Active, 7}}, Refuse: {{Refused, 7}}, Cancel: {{Active, 7}}, Reopen: {{Active, 7}},
		Finish: {{Moved, 7}}, Keep: {{Active, 7}}, Give: {{Moved, 7}},
	}
	after := map[Op]State{Seal: Sealed, Activate: Active, Refuse: Refused, Cancel: Active, Reopen: Active, Finish: Moved, Keep: Active, Give: Moved}
	in := func(all []from, p Place) bool {
		for _, f := range all {
			if f.state == p.State && f.move == p.Move {
				return true
			}
		}
		return false
	}
	for op := Seal; op <= Give; op++ {
		for _, state := range states {
			for _, move := range []uint64{5, 7, 9} {
				p := Place{State: state, Move: move}
				if state == Sealed || state == Moved {
					p.To = "b"
				}
				next, err := p.after(Step{Op: op, Move: 7, To: "b"}, 0)
				switch {
				case in(done[op], p):
					if err != nil || next != p {
						t.Errorf("%v again from %v: got %v, %v", op, p, next, err)
					}
				case in(may[op], p):
					if err != nil || next.State != after[op] || next.Move != 7 || (next.To == "b") != (next.State == Sealed || next.State == Moved) {
						t.Errorf("%v from %v: got %v, %v", op, p, next, err)
					}
				default:
					if !errors.Is(err, seq.ErrMoveOver) || next != p {
						t.Errorf("%v from %v: got %v, %v", op, p, next, err)
					}
				}
			}
		}
	}
}

// Runs are what single sections would be, however they are cut and joined.
func TestARecordIsWhatItsSectionsAre(t *testing.T) {
	const sections = 40
	r := rand.New(rand.NewPCG(1, 2))
	record, plain := NewRecord("b", []string{"r:1"}), map[seq.SectionID]Place{}
	for id := range seq.SectionID(sections) {
		plain[id] = Place{State: Inactive}
	}
	for move := uint64(1); move < 400; move++ {
		step := Step{Op: Op(1 + r.IntN(int(Give))), Move: 1 + move - uint64(r.IntN(min(3, int(move)))), To: "c"}
		first := r.IntN(sections)
		ranges := []Range{{seq.SectionID(first), uint32(1 + r.IntN(sections-first))}}
		want, fail := map[seq.SectionID]Place{}, false
		for _, id := range Sections(ranges) {
			var err error
			want[id], err = plain[id].after(step, step.Above[id])
			fail = fail || err != nil
		}
		next, _, err := record.Apply(step, ranges)
		if (err != nil) != fail {
			t.Fatalf("%+v of %v: %v", step, ranges, err)
		}
		if err != nil {
			continue
		}
		for id, p := range want {
			plain[id] = p
		}
		body, err := next.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if record, err = ParseRecord(body); err != nil {
			t.Fatal(err)
		}
		for id, p := range plain {
			if record.At(id) != p {
				t.Fatalf("section %d is %v, want %v, in %+v", id, record.At(id), p, record.Runs)
			}
		}
		for i := 1; i < len(record.Runs); i++ {
			if a, b := record.Runs[i-1], record.Runs[i]; a.end() == uint64(b.First) && a.Place == b.Place || b.Place == record.Rest {
				t.Fatalf("runs that should be one: %+v %+v", a, b)
			}
		}
	}
	restored := record.Restored()
	for id, p := range plain {
		if got := restored.At(id); got.State != Limbo || got.Move != p.Move {
			t.Errorf("section %d, %v, is %v in a new era", id, p, got)
		}
	}
	if diff := cmp.Diff(Record{}, Record{}.Restored()); diff != "" {
		t.Errorf("a cluster that is alone, in a new era: %s", diff)
	}
}

// A section that is added to a restored Set is in limbo until all sections that any Set knew are settled.
// Then it is as it was before the restore.
func TestSectionsThatAreAddedToASettledSetAreTheRoots(t *testing.T) {
	all := []Range{{0, 4}}
	for want, r := range map[State]Record{Active: {Name: "a"}, Inactive: NewRecord("b", []string{"r:1"})} {
		r = r.Restored()
		step := func(op Op, ranges []Range) (err error) {
			r, _, err = r.Apply(Step{Op: op, Move: 9, To: "c", Above: map[seq.SectionID]uint64{3: 5}}, ranges)
			return err
		}
		if err := step(Settle, all); !errors.Is(err, seq.ErrMoveOver) {
			t.Errorf("all is in limbo: %v", err)
		}
		if err := errors.Join(step(Keep, []Range{{0, 2}}), step(Give, []Range{{2, 2}})); err != nil {
			t.Fatal(err)
		}
		if got := r.At(4).State; got != Limbo {
			t.Errorf("a section that is added is %v", got)
		}
		for range 2 {
			if err := step(Settle, all); err != nil {
				t.Error(err)
			}
		}
		if got := r.At(4); got.State != want || got.Move != 9 || !r.Has(1) || r.Has(3) {
			t.Errorf("a section that is added is %v; %+v", got, r)
		}
		if r.At(2).Above != 0 || r.At(3).Above != 5 {
			t.Errorf("sections begin above what is known of others: %+v", r.Runs)
		}
	}
}

var now = time.UnixMilli(1_700_000_000_000)

func twoSets(t *testing.T) Map {
	t.Helper()
	m, _, err := Map{}.Add(Set{Name: RootName, Cluster: "c0"}, Set{Name: "b", Cluster: "c1", Addrs: []string{"b:1"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAMoveIsInTheMapUntilItsLastSectionHasArrivedOrStays(t *testing.T) {
	m := twoSets(t)
	m, move, err := m.Begin("b", []Range{{0, 4}, {8, 2}}, now)
	if err != nil || move.ID != 1 || move.From != RootName {
		t.Fatalf("got %+v, %v", move, err)
	}
	if same, again, err := m.Begin("b", []Range{{0, 4}, {8, 2}}, now); err != nil || again.ID != move.ID || same.Version != m.Version {
		t.Errorf("the same again: got %+v, %v", again, err)
	}
	for name, row := range map[string]struct {
		to     string
		ranges []Range
		want   error
	}{
		"another move of one of them": {"b", []Range{{3, 3}}, ErrMoveOpen},
		"to where they are":           {RootName, []Range{{20, 1}}, seq.ErrBadArgument},
		"no such Set":                 {"c", []Range{{20, 1}}, ErrUnknownSet},
		"none":                        {"b", nil, seq.ErrBadArgument},
		"out of order":                {"b", []Range{{20, 2}, {21, 1}}, seq.ErrBadArgument},
	} {
		if _, _, err := m.Begin(row.to, row.ranges, now); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	m, changed := m.Arrive(1, map[seq.SectionID]uint64{0: 10, 1: 20, 30: 5})
	if !changed || m.Index(0) != 1 || m.Index(2) != 0 || m.Index(30) != 0 || m.Ceilings[1] != 20 || m.By[1] != 1 {
		t.Errorf("got %+v", m)
	}
	if _, _, err := m.Begin(RootName, []Range{{0, 3}}, now); !errors.Is(err, seq.ErrBadArgument) {
		t.Errorf("sections of two Sets: got %v", err)
	}
	m, _ = m.Abort(1, []Range{{2, 2}})
	if open, there := m.Open(1); !there || cmp.Diff([]Range{{8, 2}}, open.Sections) != "" {
		t.Errorf("got %+v", open)
	}
	m, _ = m.Arrive(1, map[seq.SectionID]uint64{8: 1, 9: 1})
	if _, there := m.Open(1); there || m.Index(9) != 1 || m.Index(2) != 0 {
		t.Errorf("got %+v", m)
	}
	if again, changed := m.Arrive(1, map[seq.SectionID]uint64{8: 1}); changed || again.Version != m.Version {
		t.Errorf("a move that is over has changed the map")
	}
	if _, next, err := m.Begin(RootName, []Range{{9, 1}}, now); err != nil || next.ID != 2 || next.From != "b" {
		t.Errorf("back: got %+v, %v", next, err)
	}
	body, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := ParseMap(body); err != nil || cmp.Diff(m, back) != "" {
		t.Errorf("read back: %v %s", err, cmp.Diff(m, back))
	}
}

func TestTheMapOfABackupBeginsNoMoveBeforeItIsMadeAnew(t *testing.T) {
	was := twoSets(t)
	m := was.AsRestored(2)
	if m.Version>>32 != 2 {
		t.Errorf("version %d after %d: who knows a newer map of the eras before would keep it", m.Version, was.Version)
	}
	if _, _, err := m.Begin("b", []Range{{0, 1}}, now); !errors.Is(err, ErrMapRestored) {
		t.Errorf("got %v", err)
	}
	m, id := m.Number(100)
	if id <= 1<<32 {
		t.Errorf("took number %d", id)
	}
	m, err := m.Settle(Found{Number: id, In: map[seq.SectionID]string{5: "b"}, Ceilings: map[seq.SectionID]uint64{5: 77}, Whole: true})
	if err != nil || m.Index(5) != 1 || m.Index(4) != 0 || m.Ceilings[5] != 77 {
		t.Fatalf("got %+v, %v", m, err)
	}
	if _, move, err := m.Begin("b", []Range{{0, 1}}, now); err != nil || move.ID != id+1 {
		t.Errorf("got %+v, %v", move, err)
	}
}

func TestSetsHaveNamesAndClustersOfTheirOwn(t *testing.T) {
	m := twoSets(t)
	root := m.Sets[0]
	for name, s := range map[string]Set{
		"another cluster of that name": {Name: "b", Cluster: "c9", Addrs: []string{"x:1"}},
		"another name of that cluster": {Name: "d", Cluster: "c1", Addrs: []string{"x:1"}},
		"the root":                     {Name: "d", Cluster: "c0", Addrs: []string{"x:1"}},
		"no address":                   {Name: "d", Cluster: "c2"},
		"no cluster":                   {Name: "d", Addrs: []string{"x:1"}},
		"a bad name":                   {Name: "D!", Cluster: "c2", Addrs: []string{"x:1"}},
	} {
		if _, _, err := m.Add(root, s); !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	next, changed, err := m.Add(root, Set{Name: "b", Cluster: "c1", Addrs: []string{"b:2"}})
	if err != nil || !changed || next.Sets[1].Addrs[0] != "b:2" || m.Sets[1].Addrs[0] != "b:1" {
		t.Errorf("other addresses: got %+v, %v, %v", next.Sets, changed, err)
	}
}

func TestRangesAreReadAndWritten(t *testing.T) {
	got, err := ParseRanges("0-63, 128,200-201")
	if diff := cmp.Diff([]Range{{0, 64}, {128, 1}, {200, 2}}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for _, bad := range []string{"", "x", "5-4", "1,1", "7-9,8", "0-99999999", "-1"} {
		if _, err := ParseRanges(bad); !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

// Two operators settle the sections of a restored Set at once. The slower one notes its result after a
// section has moved again, and the map must still finish that move.
func TestWhatIsSettledLateUndoesNoMoveThatHasBegunSince(t *testing.T) {
	base := Map{Sets: []Set{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Last: 5, In: []uint16{1, 1, 1, 0}, By: []uint64{3, 3, 3, 0}, Ceilings: []uint64{7, 7, 7, 0},
		Moves: []Move{{ID: 5, From: "b", To: "a", Sections: []Range{{0, 1}}}}}
	m, number := base.Number(0)
	var begun [3]Move
	var err error
	for i, what := range []struct {
		to    string
		first seq.SectionID
	}{{"a", 1}, {"a", 2}, {"b", 3}} {
		if m, begun[i], err = m.Begin(what.to, []Range{{what.first, 1}}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	m, _ = m.Arrive(begun[1].ID, map[seq.SectionID]uint64{2: 9})
	m, back, err := m.Begin("b", []Range{{2, 1}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[seq.SectionID]uint64{0: 3, 1: 3, 2: 3}
	got, err := m.Settle(Found{Number: number, Seen: seen, In: map[seq.SectionID]string{0: "b", 1: "b", 2: "b", 3: "b"}, Ceilings: map[seq.SectionID]uint64{1: 8}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Index(2) != 0 || got.Ceilings[2] != 9 {
		t.Errorf("section 2 is in Set %d by the map, ceiling %d: it was moved since", got.Index(2), got.Ceilings[2])
	}
	if got.Index(1) != 1 || got.Ceilings[1] != 8 {
		t.Errorf("section 1 is in Set %d by the map, ceiling %d", got.Index(1), got.Ceilings[1])
	}
	for _, one := range []struct {
		move Move
		open bool
	}{{base.Moves[0], true}, {begun[0], true}, {back, true}, {begun[2], true}} {
		if _, open := got.Open(one.move.ID); open != one.open {
			t.Errorf("move %+v: open is %v, want %v", one.move, open, one.open)
		}
	}
	// That it has arrived is still to be told to where it was; one that was found elsewhere has not left
	// from there.
	there := Found{Number: number, Seen: seen, In: map[seq.SectionID]string{0: "a"}}
	if gone, err := base.Settle(there); err != nil || len(gone.Moves) != 1 || gone.Ceilings[0] != 7 {
		t.Errorf("%v: the move of a section that has arrived is not open: %+v", err, gone)
	}
	there.In[0] = "c"
	if gone, err := base.Settle(there); err != nil || len(gone.Moves) > 0 {
		t.Errorf("%v: a move is open of a section that was found elsewhere: %+v", err, gone)
	}
	// A move of before the number ends between the look at the Sets and the note.
	arrived, _ := base.Arrive(5, map[seq.SectionID]uint64{0: 8})
	if got, err := arrived.Settle(Found{Number: number, Seen: seen, In: map[seq.SectionID]string{0: "b"}}); err != nil || got.Index(0) != 0 || got.LastOf(0) != 5 {
		t.Errorf("%v: a section that arrived meanwhile is in Set %d by the map", err, got.Index(0))
	}
	restored := base.AsRestored(1)
	first, err := restored.Settle(Found{Number: restored.Last + 1, Seen: seen, In: map[seq.SectionID]string{0: "b"}, Whole: true})
	if err != nil {
		t.Fatal(err)
	}
	late, err := first.Settle(Found{Number: restored.Last + 2, Seen: seen, In: map[seq.SectionID]string{0: "a"}, Whole: true})
	if err != nil || first.Restored || late.Index(0) != 1 {
		t.Errorf("%v: section 0 is in Set %d by a map that could be relied upon", err, late.Index(0))
	}
}

// Later states of a section do not hide that the Set had it by a move. So the former Set does not get the
// section back.
func TestAPlaceSaysWhetherAMoveWasNeverActivated(t *testing.T) {
	const move = 5
	for _, row := range []struct {
		steps []Step
		from  State
		want  bool
	}{
		{nil, Inactive, false},
		{[]Step{{Op: Refuse, Move: move}}, Inactive, true},
		{[]Step{{Op: Refuse, Move: 8}}, Inactive, true},
		{[]Step{{Op: Refuse, Move: move - 1}}, Inactive, false},
		{[]Step{{Op: Give, Move: 8, To: "c"}}, Limbo, true},
		{nil, Limbo, false},
		{[]Step{{Op: Activate, Move: move}}, Inactive, false},
		{[]Step{{Op: Activate, Move: 8}}, Inactive, false},
		{[]Step{{Op: Activate, Move: move}, {Op: Seal, Move: 6, To: "c"}}, Inactive, false},
		{[]Step{{Op: Activate, Move: move}, {Op: Cancel, Move: 6}, {Op: Seal, Move: 7, To: "c"}}, Inactive, false},
		{[]Step{{Op: Activate, Move: move}, {Op: Seal, Move: 6, To: "c"}, {Op: Finish, Move: 6}}, Inactive, false},
		{[]Step{{Op: Activate, Move: move}, {Op: Seal, Move: 6, To: "c"}, {Op: Finish, Move: 6}, {Op: Refuse, Move: 8}, {Op: Refuse, Move: 9}}, Inactive, false},
		{[]Step{{Op: Activate, Move: 2}, {Op: Seal, Move: 3, To: "c"}, {Op: Finish, Move: 3}, {Op: Refuse, Move: 8}}, Inactive, true},
	} {
		r := Record{Rest: Place{State: row.from}}
		for _, s := range row.steps {
			var err error
			if r, _, err = r.Apply(s, []Range{{First: 0, Sections: 1}}); err != nil {
				t.Fatalf("%+v: %v", row.steps, err)
			}
		}
		if got := r.At(0).Never(move); got != row.want {
			t.Errorf("after %+v it is %+v: never %v, want %v", row.steps, r.At(0), got, row.want)
		}
	}
}

// A backup of another Set holds what that has heard, which is no newer for having been restored.
func TestAMapThatWasHeardIsRestoredAsItWas(t *testing.T) {
	m := Map{Version: 7, Last: 3, Sets: []Set{{Name: "main"}, {Name: "b"}}}
	if got := m.AsRestored(2); got.Version <= 7 || !got.Restored {
		t.Errorf("the root's: %+v", got)
	}
	if m.Heard = true; m.AsRestored(2).Version != 7 || m.AsRestored(2).Restored {
		t.Errorf("what was heard: %+v", m.AsRestored(2))
	}
}

func TestASetInTheMapKeepsItsLife(t *testing.T) {
	life := func(cluster byte, era seq.Era) seq.Incarnation {
		return seq.Incarnation{Cluster: seq.ClusterID{cluster}, Era: era}
	}
	root := Set{Name: RootName, Cluster: "a"}
	of := func(in seq.Incarnation) Set {
		return Set{Name: "b", Cluster: "b", Addrs: []string{"b:1"}, Incarnation: in}
	}
	m, _, err := (Map{}).Add(root, of(life(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		add, want seq.Incarnation
	}{{life(1, 1), life(1, 1)}, {seq.Incarnation{}, life(1, 1)}, {life(1, 0), life(1, 1)}, {life(1, 2), life(1, 2)}, {life(2, 0), life(2, 0)}} {
		next, changed, err := m.Add(root, of(row.add))
		if err != nil || next.Sets[1].Incarnation != row.want || changed != (row.want != life(1, 1)) {
			t.Errorf("%v: %v, %v, %v", row.add, next.Sets[1].Incarnation, changed, err)
		}
	}
	m.In = []uint16{0, 1}
	if _, _, err := m.Add(root, of(life(2, 0))); !errors.Is(err, seq.ErrForeignCluster) {
		t.Errorf("another cluster in place of a Set with sections: %v", err)
	}
}

package lab

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// ofTwo is a drill of two Sets of which b has every second of four sections, with a history.
func ofTwo(calls ...history.Call) (*drill, [2]uint64) {
	d := after(calls...)
	space := seq.Space{Name: "user", Sections: 4}
	d.shares = &shares{&space, sets.Map{Sets: []sets.Set{{Name: "main"}, {Name: "b"}}, In: []uint16{0, 1, 0, 1}}}
	d.Nodes = []localcluster.Node{{Role: store, Name: "s"}, {Role: alloc, Name: "a"}, {Role: router, Name: "r"},
		{Role: store, Name: "b-s", Set: "b"}, {Role: alloc, Name: "b-a", Set: "b"}}
	return d, [2]uint64{uint64(d.shares.some("main")), uint64(d.shares.some("b"))}
}

func TestWhatCallersOfEachSetSawIsCountedFromTheFault(t *testing.T) {
	d, uids := ofTwo()
	main, b := uids[0], uids[1]
	d.dead = "b"
	named := "by routers: Set b: " + seq.ErrNoQuorum.Error() + ": none answers"
	add := func(uid, number uint64, start, end time.Duration, err string) {
		c := call(uid, number, start, end)
		c.Err = err
		d.load.History.Add(c)
	}
	add(main, 1, 10*milli, 90*milli, "") // before the fault
	add(b, 1, 20*milli, 30*milli, "")
	add(main, 2, 110*milli, 119*milli, "")
	add(b, 0, 120*milli, 2120*milli, named)
	add(b, 0, 2200*milli, 2201*milli, named)
	add(b, 0, 2300*milli, 2305*milli, "direct: context deadline exceeded")
	add(b, 5, 5000*milli, 5040*milli, "")
	r := d.measure(Scenario{Sets: 2, Expect: Expect{Others: true}})
	want := []SetImpact{
		{Set: "main", Requests: 1, P99MS: 9, MaxPauseMS: 9},
		{Set: "b", Dead: true, Requests: 4, Errors: 3, Unnamed: 1, P99MS: 2000, MaxPauseMS: 2000, FirstMS: 2020, ErrorP50MS: 5, ErrorMaxMS: 2000, Gaps: 3},
	}
	if !cmp.Equal(r.Sets, want) {
		t.Errorf("got %s", cmp.Diff(want, r.Sets))
	}
	if r.MaxPauseMS != 9 {
		t.Errorf("longest pause %v ms, want that of the other Set, 9", r.MaxPauseMS)
	}
	if err := spread(r.Sets); !errors.Is(err, ErrUnnamed) || errors.Is(err, ErrSpread) {
		t.Errorf("got %v, want %v", err, ErrUnnamed)
	}
	r.Sets[0].Errors = 1
	if err := spread(r.Sets); !errors.Is(err, ErrSpread) {
		t.Errorf("got %v, want %v", err, ErrSpread)
	}
	if err := spread([]SetImpact{{Set: "main"}, {Set: "b", Dead: true, Errors: 9}}); err != nil {
		t.Errorf("got %v for errors of the dead Set by its name", err)
	}
}

func TestOnlyCallsOfSectionsThatMovedAreAmongThePausesOfMoves(t *testing.T) {
	d, uids := ofTwo()
	main, b := uids[0], uids[1]
	d.moves = []batch{{ids: []seq.SectionID{d.shares.space.SectionOf(seq.UID(b))}, from: 200 * milli, to: 240 * milli}}
	for _, c := range []history.Call{
		call(b, 1, 190*milli, 199*milli), // before
		call(b, 2, 199*milli, 239*milli),
		call(main, 1, 200*milli, 300*milli), // another section
		call(b, 3, 210*milli, 241*milli),
		call(b, 4, 240*milli, 250*milli), // afterwards
	} {
		d.load.History.Add(c)
	}
	got := d.measure(Scenario{Sets: 2}).Moves
	if want := (&MovesFelt{Moves: 1, Sections: 1, Calls: 2, P50MS: 40, P99MS: 40, P100MS: 40}); !cmp.Equal(got, want) {
		t.Errorf("got %s", cmp.Diff(want, got))
	}
}

func TestASetToBreakMustBeOneOfThem(t *testing.T) {
	d, _ := ofTwo()
	kill, err := FindDrill("kill-set")
	if err != nil {
		t.Fatal(err)
	}
	restart, err := FindDrill("restart-alloc")
	if err != nil {
		t.Fatal(err)
	}
	restart.Allocs = 1
	rows := []struct {
		name  string
		sc    Scenario
		nodes []localcluster.Node
		set   string
		want  error
	}{
		{"the last", kill, d.Nodes, "", nil},
		{"the root", kill, d.Nodes, "main", nil},
		{"another", kill, d.Nodes, "c", sets.ErrUnknownSet},
		{"of one cluster", kill, append(d.Nodes[:3:3], d.Nodes[:3]...), "", ErrTooSmall},
		{"a drill of nodes", restart, d.Nodes, "b", sets.ErrUnknownSet},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if err := row.sc.Fits(row.nodes, false, "", row.set); !errors.Is(err, row.want) || row.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, row.want)
			}
		})
	}
}

func TestMomentsThatFollowEachOtherAreToldOnceEach(t *testing.T) {
	l := newTimeline(nil)
	for _, at := range []time.Duration{100 * milli, 100*milli + time.Microsecond, 105 * milli} {
		l.add(at, eventFault, "b", "sections come")
	}
	if got := len(l.list()); got != 2 {
		t.Errorf("got %d moments, want those at 100 and 105 ms", got)
	}
}

// The root may open the move of a killed coordinator at any later time. Each other open move is a fault.
func TestOnlyAMoveOfAKilledCoordinatorMayOpenLate(t *testing.T) {
	var o orphans
	o.add("b", []seq.SectionID{0, 1, 2, 5})
	move := func(to string, ranges ...sets.Range) sets.Move { return sets.Move{ID: 5, To: to, Sections: ranges} }
	late := move("b", sets.Range{First: 0, Sections: 3}, sets.Range{First: 5, Sections: 1})
	for _, row := range []struct {
		name string
		open []sets.Move
		want bool
	}{
		{"none", nil, false},
		{"as it was begun", []sets.Move{late}, true},
		{"to another Set", []sets.Move{move("main", late.Sections...)}, false},
		{"some of the sections have arrived", []sets.Move{move("b", late.Sections[1])}, false},
		{"beside another", []sets.Move{late, move("b", sets.Range{First: 7, Sections: 1})}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := o.all(row.open); got != row.want {
				t.Errorf("got %t, want %t", got, row.want)
			}
		})
	}
}

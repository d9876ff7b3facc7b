package placement

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
)

func TestSectionsMoveToAJoinedNodeAfterItsDwellAndWithinTheBudget(t *testing.T) {
	const sections = 1024
	table := firstTable(t, sections, alive(time.Hour, "a", "b", "c")...)
	in := Input{Table: table, Sections: sections, Live: alive(time.Hour, "a", "b", "c", "d"), KnownNodes: 4}

	in.Live[3].AliveFor = DefaultDwell - 1
	in.Table, _, _ = apply(t, in)
	if got := held(in.Table)["d"]; got != 0 {
		t.Fatalf("%d sections moved to a node before its dwell time", got)
	}
	if got := in.Table.Index("d"); got != 3 {
		t.Fatalf("got index %d for the joined node, want it appended at 3", got)
	}

	in.Live[3].AliveFor = DefaultDwell
	next, changes, _ := apply(t, in)
	if got, want := held(next)["d"], sections/DefaultBudgetParts; got != want {
		t.Errorf("%d sections moved to the joined node in one plan, want the budget of %d", got, want)
	}
	for _, c := range changes {
		if c.Kind != KindMove || !strings.HasSuffix(c.Reason, ": d held less than half of its share") {
			t.Errorf("got change %v, want moves for balance only", c)
		}
	}

	in.Table = settle(t, in)
	if got := held(in.Table)["d"]; got < sections/8 || got > sections/4 {
		t.Errorf("the joined node came to rest at %d sections, want half to all of its share of %d", got, sections/4)
	}
}

func TestWithALargeBudgetAJoinedNodeIsFilledToItsShareAtOnce(t *testing.T) {
	table := firstTable(t, 1000, alive(time.Hour, "a", "b", "c")...)
	next, _, _ := apply(t, Input{Table: table, Sections: 1000, Live: alive(time.Hour, "a", "b", "c", "d"), Config: Config{Budget: 1000}})
	got := held(next)
	if got["d"] != 250 {
		t.Errorf("the joined node holds %d sections, want its share of 250", got["d"])
	}
	for _, name := range []string{"a", "b", "c"} {
		if got[name] < 249 {
			t.Errorf("node %s was left with %d sections, want none taken below its share of 250", name, got[name])
		}
	}
}

func TestANodeWithHalfOfItsShareIsGivenNothing(t *testing.T) {
	rows := []struct{ b, want int }{{b: 0, want: 50}, {b: 24, want: 50}, {b: 25, want: 25}, {b: 40, want: 40}}
	for _, row := range rows {
		table := &seq.RouteTable{Version: 1}
		for _, n := range alive(0, "a", "b") {
			table.Nodes = append(table.Nodes, seq.Node{Name: n.Name, Addr: n.Addr, Session: n.Session, Weight: 100})
		}
		for id := range 100 {
			p := seq.Placement{Owner: 0, Standby: 1, Standby2: seq.NoNode}
			if id < row.b {
				p.Owner, p.Standby = 1, 0
			}
			table.Sections = append(table.Sections, p)
		}
		next, _, _ := apply(t, Input{Table: table, Sections: 100, Live: alive(time.Hour, "a", "b"), Config: Config{Budget: 100}})
		if got := held(next)["b"]; got != row.want {
			t.Errorf("from %d of 100 sections the node came to %d, want %d", row.b, got, row.want)
		}
	}
}

func TestPinnedSectionsAreNotMovedForBalance(t *testing.T) {
	table := firstTable(t, 64, alive(time.Hour, "a")...)
	table.Pins = map[seq.SectionID]string{}
	for id := range seq.SectionID(60) {
		table.Pins[id] = "a"
	}
	next := settle(t, Input{Table: table, Sections: 64, Live: alive(time.Hour, "a", "b"), Config: Config{Budget: 64}})
	if got := held(next); got["a"] != 60 || got["b"] != 4 {
		t.Errorf("got %v, want the four sections without a pin moved and no other", got)
	}
}

func TestANodeThatReturnsIsNotGivenBackWhatItHad(t *testing.T) {
	table := firstTable(t, 256, alive(time.Hour, "a", "b", "c")...)
	without := settle(t, Input{Table: table, Sections: 256, Live: alive(time.Hour, "a", "b")})
	back := alive(time.Hour, "a", "b", "c")
	back[2].AliveFor = time.Second
	next := settle(t, Input{Table: without, Sections: 256, Live: back})
	if diff := cmp.Diff(owners(without), owners(next)); diff != "" {
		t.Errorf("owners changed when a node came back (-want +got):\n%s", diff)
	}
}

func TestANodeThatComesAndGoesMovesNothingAfterItsFirstDeath(t *testing.T) {
	const sections = 256
	table := firstTable(t, sections, alive(time.Hour, "a", "b", "c")...)
	table = settle(t, Input{Table: table, Sections: sections, Live: alive(time.Hour, "a", "b")})
	want := owners(table)
	for i := range 20 {
		nodes := alive(time.Hour, "a", "b")
		if i%2 == 0 {
			nodes = alive(time.Hour, "a", "b", "c")
			nodes[2].AliveFor = DefaultDwell / 2
			nodes[2].Session = seq.Session(100 + i)
		}
		table = settle(t, Input{Table: table, Sections: sections, Live: nodes})
		if diff := cmp.Diff(want, owners(table)); diff != "" {
			t.Fatalf("round %d: owners changed (-want +got):\n%s", i, diff)
		}
	}
}

func TestADrainedNodeIsEmptiedAndGetsSectionsAgainWhenUndrained(t *testing.T) {
	nodes := alive(time.Hour, "a", "b", "c")
	in := Input{Table: firstTable(t, 256, nodes...), Sections: 256, Live: nodes, Config: Config{Budget: 256}}
	var err error
	if in.Table, err = Drain(in.Table, "b", false); err != nil {
		t.Fatal(err)
	}
	in.Table = settle(t, in)
	for id, p := range in.Table.Sections {
		if slices.Contains([]int16{p.Owner, p.Standby, p.Standby2}, 1) {
			t.Fatalf("section %d is still placed on the drained node: %v", id, p)
		}
	}
	if in.Table, err = Drain(in.Table, "b", true); err != nil {
		t.Fatal(err)
	}
	in.Table = settle(t, in)
	if got := held(in.Table)["b"]; got != 256/3 {
		t.Errorf("the undrained node holds %d sections, want its share of %d", got, 256/3)
	}
}

func TestARebalanceByForceIsPureRendezvousButForPins(t *testing.T) {
	nodes := alive(0, "a", "b", "c")
	want := firstTable(t, 256, nodes...)
	skewed := firstTable(t, 256, nodes[:1]...) // everything is on a
	skewed.Pins = map[seq.SectionID]string{3: "a", 4: "a"}
	next, changes, _ := apply(t, Input{Table: skewed, Sections: 256, Live: nodes, Force: true})
	wantOwners := owners(want)
	wantOwners[3], wantOwners[4] = "a", "a"
	if diff := cmp.Diff(wantOwners, owners(next)); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if !slices.Contains(kinds(changes), KindRebalance) {
		t.Errorf("got changes %v, want one of kind rebalance", changes)
	}
	if again, changes := Plan(Input{Table: next, Sections: 256, Live: nodes, Force: true}); again != nil {
		t.Errorf("a second rebalance changed %v, want nothing", changes)
	}
}

func TestASessionThatLeavesIsGivenNothingAndTheNodeIsAgainAsAnotherOne(t *testing.T) {
	nodes := alive(time.Hour, "a", "b", "c")
	in := Input{Table: firstTable(t, 256, nodes...), Sections: 256, Live: nodes, Config: Config{Budget: 256}}
	in.Table = in.Table.Clone()
	in.Table.Nodes[1].Leaving = nodes[1].Session
	for _, force := range []bool{false, true} {
		in.Force = force
		next, _, _ := apply(t, in)
		for id, p := range next.Sections {
			if slices.Contains([]int16{p.Owner, p.Standby, p.Standby2}, 1) {
				t.Fatalf("force %v: section %d is placed on the node that leaves: %v", force, id, p)
			}
		}
		in.Table = next
	}
	in.Force = false
	if next := settle(t, in); held(next)["b"] != 0 {
		t.Errorf("the node that leaves came to hold %d sections, want none", held(next)["b"])
	}
	in.Live[1].Session = 99
	if got := held(settle(t, in))["b"]; got != 256/3 {
		t.Errorf("the node holds %d sections as another session, want its share of %d", got, 256/3)
	}
}

// After a stop of the whole cluster, the node that left last has all counters. It may come back a moment
// after the node that plans.
func TestANodeThatLeftAndIsAwaitedKeepsItsSections(t *testing.T) {
	nodes := alive(time.Hour, "a", "b", "c")
	table := firstTable(t, 256, nodes...).Clone()
	table.Nodes[1].Leaving = nodes[1].Session
	nodes[1].Awaited, nodes[1].AliveFor = true, 0
	next, _, _ := apply(t, Input{Table: table, Sections: 256, Live: nodes, Config: Config{Budget: 256}})
	if got, want := held(next)["b"], held(table)["b"]; got != want {
		t.Errorf("it holds %d sections, want %d", got, want)
	}
}

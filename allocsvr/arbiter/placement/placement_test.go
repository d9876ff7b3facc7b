package placement

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
)

// alive gives live nodes of normal weight that have been alive for d.
func alive(d time.Duration, names ...string) []Node {
	var nodes []Node
	for i, name := range names {
		nodes = append(nodes, Node{Name: name, Addr: name + ":1", Session: seq.Session(i + 1), Weight: 100, AliveFor: d})
	}
	return nodes
}

// fatal has the methods that tests and properties share.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// apply plans once as the arbiter does; changed is false when there is nothing to do.
func apply(t fatal, in Input) (next *seq.RouteTable, changes []Change, changed bool) {
	t.Helper()
	next, changes = Plan(in)
	if next == nil {
		if len(changes) > 0 {
			t.Fatalf("no table but changes %v", changes)
		}
		return in.Table, nil, false
	}
	if len(changes) == 0 {
		t.Fatalf("a table without a reason: %+v", next)
	}
	if next.Version != in.Table.Version {
		t.Fatalf("got version %d, want %d left for the writer", next.Version, in.Table.Version)
	}
	m, err := seq.NewMapping(seq.Space{Name: "user", Sections: uint32(in.Sections)})
	if err != nil {
		t.Fatalf("mapping: %v", err)
	}
	if err := next.Validate(m); err != nil {
		t.Fatalf("the planned table is not sound: %v", err)
	}
	next.Version++
	return next, changes, true
}

// settle plans until nothing changes.
func settle(t fatal, in Input) *seq.RouteTable {
	t.Helper()
	for range 4*in.Sections + 10 {
		next, _, changed := apply(t, in)
		if !changed {
			return in.Table
		}
		in.Table = next
	}
	t.Fatalf("plans do not come to an end")
	return nil
}

func firstTable(t fatal, sections int, nodes ...Node) *seq.RouteTable {
	t.Helper()
	next, _, changed := apply(t, Input{Table: &seq.RouteTable{}, Sections: sections, Live: nodes, KnownNodes: len(nodes)})
	if !changed {
		t.Fatalf("no first table")
	}
	return next
}

// owners returns the names of the owners by section, "" for none.
func owners(t *seq.RouteTable) []string {
	names := make([]string, len(t.Sections))
	for id := range t.Sections {
		n, _ := t.Owner(seq.SectionID(id))
		names[id] = n.Name
	}
	return names
}

func held(t *seq.RouteTable) map[string]int {
	n := map[string]int{}
	for _, name := range owners(t) {
		n[name]++
	}
	return n
}

func nameAt(t *seq.RouteTable, i int16) string {
	if i == seq.NoNode {
		return ""
	}
	return t.Nodes[i].Name
}

func kinds(changes []Change) []string {
	var k []string
	for _, c := range changes {
		if !slices.Contains(k, c.Kind) {
			k = append(k, c.Kind)
		}
	}
	return k
}

func TestTheFirstTableSpreadsSectionsByWeight(t *testing.T) {
	nodes := alive(0, "a", "b", "c")
	nodes[2].Weight = 200
	table := firstTable(t, 4096, nodes...)
	got := held(table)
	for name, want := range map[string]float64{"a": 1024, "b": 1024, "c": 2048} {
		if math.Abs(float64(got[name])-want) > want/10 {
			t.Errorf("node %s holds %d of 4096 sections, want %v within a tenth", name, got[name], want)
		}
	}
	for id, p := range table.Sections {
		if p.Owner == p.Standby || p.Owner == p.Standby2 || p.Standby == p.Standby2 || p.Standby2 == seq.NoNode {
			t.Fatalf("section %d is placed on %v, want three distinct nodes", id, p)
		}
	}
	if want := []string{"a", "b", "c"}; !slices.Equal([]string{table.Nodes[0].Name, table.Nodes[1].Name, table.Nodes[2].Name}, want) {
		t.Errorf("got nodes %v, want them in the order %v", table.Nodes, want)
	}
}

func TestTheFirstTableIsOneDecision(t *testing.T) {
	_, got := Plan(Input{Table: &seq.RouteTable{}, Sections: 64, Live: alive(0, "a", "b")})
	want := []Change{{Kind: KindTable, Subject: "64 sections", Reason: "first placement over 2 live nodes"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestTheOrderOfTheLiveNodesDoesNotMatter(t *testing.T) {
	nodes := alive(0, "a", "b", "c")
	want, _ := Plan(Input{Table: &seq.RouteTable{}, Sections: 64, Live: nodes})
	slices.Reverse(nodes)
	nodes = append(nodes, nodes[0]) // one name twice
	got, _ := Plan(Input{Table: &seq.RouteTable{}, Sections: 64, Live: nodes})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestWithoutALiveNodeNothingIsPlanned(t *testing.T) {
	if next, changes := Plan(Input{Table: &seq.RouteTable{}, Sections: 64}); next != nil || changes != nil {
		t.Errorf("got %v and %v, want no first table without nodes", next, changes)
	}
	table := firstTable(t, 64, alive(0, "a", "b", "c")...)
	if next, changes := Plan(Input{Table: table, Sections: 64}); next != nil || changes != nil {
		t.Errorf("got %v and %v, want everything left where it is", next, changes)
	}
}

// TestAnOwnerThatIsGoneIsFollowedByTheRightNode looks at one section whose places
// are owner a, standby b, second standby c, in a cluster of a, b, c, d.
func TestAnOwnerThatIsGoneIsFollowedByTheRightNode(t *testing.T) {
	rows := []struct {
		name      string
		live      string
		drained   string
		pin       string
		effective string
		want      string // "?": the best of the live nodes by rendezvous
	}{
		{name: "all live", live: "abcd", want: "a"},
		{name: "owner live though another is effective", live: "abcd", effective: "b", want: "a"},
		{name: "owner dead", live: "bcd", want: "b"},
		{name: "owner dead, somebody took over", live: "bcd", effective: "d", want: "d"},
		{name: "owner dead, who took over is drained", live: "bcd", effective: "d", drained: "d", want: "b"},
		{name: "owner dead, who took over is dead", live: "bc", effective: "d", want: "b"},
		{name: "owner dead, who took over is unknown", live: "bcd", effective: "z", want: "b"},
		{name: "owner drained", live: "abcd", drained: "a", want: "b"},
		{name: "owner drained and still serving", live: "abcd", drained: "a", effective: "a", want: "b"},
		{name: "owner dead, standby drained", live: "bcd", drained: "b", want: "c"},
		{name: "owner and standby dead", live: "cd", want: "c"},
		{name: "all three dead", live: "d", want: "?"},
		{name: "only drained nodes live, owner among them", live: "ab", drained: "ab", want: "a"},
		{name: "only drained nodes live, owner dead", live: "bc", drained: "abcd", want: "b"},
		{name: "pinned", live: "abcd", pin: "d", want: "d"},
		{name: "pinned to a dead node", live: "abc", pin: "d", want: "a"},
		{name: "pinned to a drained node", live: "abcd", drained: "d", pin: "d", want: "a"},
		{name: "pinned to an unknown node", live: "abcd", pin: "z", want: "a"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			table := &seq.RouteTable{Version: 7, Sections: []seq.Placement{{Owner: 0, Standby: 1, Standby2: 2}}}
			for _, n := range alive(0, "a", "b", "c", "d") {
				table.Nodes = append(table.Nodes, seq.Node{Name: n.Name, Addr: n.Addr, Session: n.Session, Weight: 100, Drained: strings.Contains(row.drained, n.Name)})
			}
			if row.pin != "" {
				table.Pins = map[seq.SectionID]string{0: row.pin}
			}
			in := Input{Table: table, Sections: 1, Owners: []string{row.effective}}
			for _, n := range alive(0, "a", "b", "c", "d") {
				if strings.Contains(row.live, n.Name) {
					in.Live = append(in.Live, n)
				}
			}
			next, _, _ := apply(t, in)
			got, _ := next.Owner(0)
			if row.want == "?" {
				if !strings.Contains(row.live, got.Name) || got.Name == "" {
					t.Errorf("got owner %q, want one of %q", got.Name, row.live)
				}
				return
			}
			if got.Name != row.want {
				t.Errorf("got owner %q, want %q", got.Name, row.want)
			}
		})
	}
}

func TestStandbysStayAndOnlyFreePlacesAreFilled(t *testing.T) {
	table := firstTable(t, 256, alive(0, "a", "b", "c", "d", "e")...)
	next, _, _ := apply(t, Input{Table: table, Sections: 256, Live: alive(0, "a", "b", "c", "d")}) // e dies
	for id := range table.Sections {
		var want, got []string
		for _, i := range table.Sections[id].Candidates() {
			if name := nameAt(table, i); name != "e" {
				want = append(want, name)
			}
		}
		for _, i := range next.Sections[id].Candidates() {
			got = append(got, nameAt(next, i))
		}
		if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
			t.Fatalf("section %d: who stays keeps its order (-want +got):\n%s", id, diff)
		}
		if slices.Contains(got, "e") || slices.Contains(got, "") {
			t.Fatalf("section %d is placed on %v, want three live nodes", id, got)
		}
	}
}

func TestADeadNodeIsForgottenOnceNoLossCounts(t *testing.T) {
	table := firstTable(t, 64, alive(0, "a", "b", "c", "d")...)
	in := Input{Table: table, Sections: 64, Live: alive(0, "a", "c", "d"), LostWithinMinute: 1, KnownNodes: 4}
	in.Live[1].Session, in.Live[2].Session = 3, 4
	next, changes, _ := apply(t, in)
	if next.Index("b") < 0 {
		t.Errorf("the node was removed while its loss still counts towards mass suspicion")
	}
	if got, want := kinds(changes), []string{KindLost, KindMove, KindStandby}; !slices.Equal(got, want) {
		t.Errorf("got changes %v, want kinds %v", changes, want)
	}
	before := owners(next)
	in.Table, in.LostWithinMinute = next, 0
	next, changes, _ = apply(t, in)
	if next.Index("b") >= 0 {
		t.Errorf("a node that nothing speaks for is still in the table")
	}
	want := []Change{{Kind: KindLost, Subject: "b", Reason: "not live and without sections; removed from the table"}}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, owners(next)); diff != "" {
		t.Errorf("renumbering changed owners (-want +got):\n%s", diff)
	}
}

func TestADeadNodeThatAnOperatorMarkedIsKept(t *testing.T) {
	for _, mark := range []string{"drained", "pinned"} {
		table := firstTable(t, 64, alive(0, "a", "b", "c")...)
		if mark == "drained" {
			table.Nodes[1].Drained = true
		} else {
			table.Pins = map[seq.SectionID]string{5: "b"}
		}
		in := Input{Table: table, Sections: 64, Live: alive(0, "a", "c")}
		in.Table = settle(t, in)
		if in.Table.Index("b") != 1 || held(in.Table)["b"] != 0 {
			t.Errorf("%s: got node %d with %d sections, want it kept in its place and empty", mark, in.Table.Index("b"), held(in.Table)["b"])
		}
	}
}

func TestARestartedNodeKeepsItsSectionsUnderItsNewSession(t *testing.T) {
	table := firstTable(t, 64, alive(0, "a", "b")...)
	nodes := alive(0, "a", "b")
	nodes[1].Session, nodes[1].Addr, nodes[1].Weight = 77, "b:2", 500
	next, changes, _ := apply(t, Input{Table: table, Sections: 64, Live: nodes})
	want := table.Clone()
	want.Version++
	want.Nodes[1].Session, want.Nodes[1].Addr = 77, "b:2" // the weight is the table's
	if diff := cmp.Diff(want, next); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if got := kinds(changes); !slices.Equal(got, []string{KindJoin}) {
		t.Errorf("got changes %v, want one of kind join", changes)
	}
}

func TestADeathIsAFewDecisionsWithReasons(t *testing.T) {
	table := firstTable(t, 4096, alive(0, "a", "b", "c")...)
	_, changes, _ := apply(t, Input{Table: table, Sections: 4096, Live: alive(0, "a", "b")})
	if len(changes) > 5 {
		t.Errorf("got %d changes for one death, want a handful: the log of decisions is bounded", len(changes))
	}
	for _, c := range changes {
		if c.Kind == KindMove && !strings.HasSuffix(c.Reason, ": c is not live") {
			t.Errorf("got reason %q, want it to say that c is not live", c.Reason)
		}
	}
}

func TestATableThatIsNotSoundIsMended(t *testing.T) {
	table := &seq.RouteTable{Version: 3, Nodes: []seq.Node{{Name: "a", Weight: 0}}, Pins: map[seq.SectionID]string{9: "a"},
		Sections: []seq.Placement{{Owner: 5, Standby: -7, Standby2: 0}}}
	next := settle(t, Input{Table: table, Sections: 4, Live: alive(0, "a", "b")})
	if got := held(next); got[""] != 0 {
		t.Errorf("got owners %v, want every section owned", owners(next))
	}
}

func ExamplePlan() {
	in := Input{Table: &seq.RouteTable{}, Sections: 8, Live: []Node{{Name: "a", Addr: "10.0.0.1:7100", Session: 1}}}
	next, changes := Plan(in)
	fmt.Println(next.Nodes[0].Name, len(next.Sections), changes[0].Kind)
	// Output: a 8 table
}

package placement

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seqsvr/seqsvr/seq"
)

// inZones returns live nodes of normal weight, "a1", "a2" ... in zone "a" and so on. The name "" means no
// zone.
func inZones(d time.Duration, counts map[string]int) (nodes []Node) {
	for _, zone := range []string{"", "a", "b", "c", "d"} {
		for i := range counts[zone] {
			nodes = append(nodes, Node{Name: fmt.Sprintf("%s%d", zone, i+1), Addr: "x:1", Session: seq.Session(len(nodes) + 1),
				Weight: 100, Zone: zone, AliveFor: d})
		}
	}
	return nodes
}

func without(nodes []Node, zone string) []Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return n.Zone == zone })
}

// wantApart fails if standbys are not in zones apart and could be. The nodes of fit may be given sections.
func wantApart(t fatal, table *seq.RouteTable, fit map[string]bool) {
	t.Helper()
	zone := func(i int16) string { return table.Nodes[i].Zone }
	apart := func(of ...string) bool { // whether there is a node apart from all of these zones
		return slices.ContainsFunc(table.Nodes, func(n seq.Node) bool {
			return fit[n.Name] && !slices.ContainsFunc(of, func(z string) bool { return !seq.Apart(z, n.Zone) })
		})
	}
	for id, p := range table.Sections {
		if !apart(zone(p.Owner)) {
			continue
		}
		if p.Standby == seq.NoNode || !seq.Apart(zone(p.Owner), zone(p.Standby)) {
			t.Fatalf("section %d is placed on %v of %+v: its standby is not apart from its owner", id, p, table.Nodes)
		}
		if apart(zone(p.Owner), zone(p.Standby)) && (p.Standby2 == seq.NoNode || !seq.Apart(zone(p.Standby2), zone(p.Owner)) || !seq.Apart(zone(p.Standby2), zone(p.Standby))) {
			t.Fatalf("section %d is placed on %v of %+v: its second standby is not in a third zone", id, p, table.Nodes)
		}
	}
}

func TestAStandbyIsInAnotherZoneWhateverTheTableWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		next, _, _ := apply(t, in)
		fit, drained := map[string]bool{}, 0
		for _, n := range in.Live {
			i := in.Table.Index(n.Name)
			fit[n.Name] = i < 0 || !in.Table.Nodes[i].Drained
			if !fit[n.Name] {
				drained++
			}
		}
		if drained == len(in.Live) { // they have to do
			for name := range fit {
				fit[name] = true
			}
		}
		wantApart(t, next, fit)
		if drained == 0 && next.Together() > 0 {
			zones := map[string]bool{}
			for _, n := range in.Live {
				zones[next.Nodes[next.Index(n.Name)].Zone] = true
			}
			if delete(zones, ""); len(zones) > 1 {
				t.Fatalf("%d sections are counted as together though %d zones are alive", next.Together(), len(zones))
			}
		}
	})
}

// Zones change the standbys only. The owners are the same as without zones, and so are the bounds of the
// moves.
func TestZonesMoveNoSection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := drawNodes(t, "nodes")
		plain := slices.Clone(nodes)
		for i := range plain {
			plain[i].Zone = ""
		}
		sections := rapid.IntRange(1, 80).Draw(t, "sections")
		table := firstTable(t, sections, plain...)
		if was, is := owners(table), owners(firstTable(t, sections, nodes...)); !slices.Equal(was, is) {
			t.Fatalf("zones change the owners: %v, without them %v", is, was)
		}
		for i := range table.Nodes { // as the nodes tell their zones once there is a table
			at := slices.IndexFunc(nodes, func(n Node) bool { return n.Name == table.Nodes[i].Name })
			table.Nodes[i].Zone = nodes[at].Zone
		}
		told := settle(t, Input{Table: table.Clone(), Sections: sections, Live: nodes})
		if was, is := owners(settle(t, Input{Table: table, Sections: sections, Live: plain})), owners(told); !slices.Equal(was, is) {
			t.Fatalf("zones that are told move sections: %v, without them %v", is, was)
		}
		fit := map[string]bool{}
		for _, n := range nodes {
			fit[n.Name] = true
		}
		wantApart(t, told, fit)
	})
}

// takenOver counts the sections of each node after the nodes of a zone have died and their first or second
// standbys have taken over.
func takenOver(table *seq.RouteTable, zone string) map[string]int {
	has := map[string]int{}
	for _, p := range table.Sections {
		for _, i := range p.Candidates() {
			if i != seq.NoNode && table.Nodes[i].Zone != zone {
				has[table.Nodes[i].Name]++
				break
			}
		}
	}
	return has
}

func TestTheOthersCarryTheSectionsOfAZoneByTheirWeights(t *testing.T) {
	const sections = 4096
	limits := Config{Budget: sections / 2} // as the arbiter has it
	for _, row := range []map[string]int{
		{"a": 1, "b": 1, "c": 1},
		{"a": 2, "b": 2, "c": 2},
		{"a": 2, "b": 1, "c": 1},
		{"a": 3, "b": 2, "c": 1},
		{"a": 3, "b": 2, "c": 2, "d": 1},
	} {
		t.Run(fmt.Sprint(row), func(t *testing.T) {
			nodes := inZones(time.Hour, row)
			table := firstTable(t, sections, nodes...)
			check := func(when string, most float64) {
				t.Helper()
				for zone := range row {
					left := without(nodes, zone)
					got := takenOver(table, zone)
					want := float64(sections) / float64(len(left))
					for _, n := range left {
						if has := float64(got[n.Name]); has > most*want || has < want/most {
							t.Errorf("%s: without zone %s, %s has %.0f sections, want %.0f, within a factor of %.2f", when, zone, n.Name, has, want, most)
						}
					}
				}
			}
			check("at first", 1.15)                   // seven standard deviations of a binomial draw and more
			for _, zone := range []string{"a", "b"} { // each falls away, and is back
				table = settle(t, Input{Table: table, Sections: sections, Live: without(nodes, zone), KnownNodes: len(nodes), Config: limits})
				young := slices.Clone(nodes)
				for i := range young {
					if young[i].Zone == zone {
						young[i].AliveFor = 0
					}
				}
				table = settle(t, Input{Table: table, Sections: sections, Live: young, KnownNodes: len(nodes), Config: limits})
				table = settle(t, Input{Table: table, Sections: sections, Live: nodes, KnownNodes: len(nodes), Config: limits})
				check("after zone "+zone+" was away", 1.5) // balance takes of each owner what is there
			}
		})
	}
}

func TestANodeThatHasJustComeStandsByForNothingThatAnotherZoneDoes(t *testing.T) {
	table := firstTable(t, 256, inZones(time.Hour, map[string]int{"a": 1, "b": 1})...)
	nodes := inZones(time.Hour, map[string]int{"a": 1, "b": 1, "c": 1})
	nodes[2].AliveFor = DefaultDwell - 1
	standby := func(table *seq.RouteTable) (n int) {
		for _, p := range table.Sections {
			if p.Standby != seq.NoNode && table.Nodes[p.Standby].Name == "c1" {
				n++
			}
		}
		return n
	}
	young := settle(t, Input{Table: table, Sections: 256, Live: nodes})
	if n := standby(young); n != 0 {
		t.Errorf("it stands by for %d sections before its dwell time", n)
	}
	nodes[2].AliveFor = DefaultDwell
	if n := standby(settle(t, Input{Table: young, Sections: 256, Live: nodes})); n < 256/6 {
		t.Errorf("it stands by for %d of 256 sections after its dwell time", n)
	}
}

package placement

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seqsvr/seqsvr/seq"
)

// drawNodes draws 1 to 8 live nodes with weights and ages.
func drawNodes(t *rapid.T, label string) []Node {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-j][0-9]?`), 1, 8, rapid.ID[string]).Draw(t, label)
	zones := rapid.SampledFrom([][]string{{""}, {"z1"}, {"z1", "z2"}, {"z1", "z2", "z3"}, {"z1", "z1", "z2"}, {"", "z1", "z2", "z3"}}).Draw(t, "zones")
	nodes := make([]Node, 0, len(names))
	for _, name := range names {
		nodes = append(nodes, Node{
			Name: name, Addr: name + ":1",
			Session:  seq.Session(rapid.Uint64Range(1, 3).Draw(t, "session")),
			Weight:   rapid.SampledFrom([]uint32{0, 1, 50, 100, 100, 100, 300}).Draw(t, "weight"),
			AliveFor: rapid.SampledFrom([]time.Duration{0, DefaultDwell - 1, DefaultDwell, time.Hour}).Draw(t, "alive for"),
			Zone:     rapid.SampledFrom(zones).Draw(t, "zone"),
		})
	}
	return nodes
}

// drawInput draws a table with a history of its own and a view that need not fit it.
func drawInput(t *rapid.T) Input {
	sections := rapid.IntRange(1, 80).Draw(t, "sections")
	table := firstTable(t, sections, drawNodes(t, "first nodes")...)
	for id := range table.Sections {
		if rapid.IntRange(0, 3).Draw(t, "skew") == 0 {
			place := func() int16 { return int16(rapid.IntRange(seq.NoNode, len(table.Nodes)-1).Draw(t, "place")) }
			table.Sections[id] = seq.Placement{Owner: place(), Standby: place(), Standby2: place()}
		}
	}
	for i := range table.Nodes {
		table.Nodes[i].Drained = rapid.IntRange(0, 3).Draw(t, "drained") == 0
	}
	live := drawNodes(t, "live nodes")
	in := Input{
		Table: table, Sections: sections, Live: live, KnownNodes: len(live),
		LostWithinMinute: rapid.IntRange(0, len(live)/3).Draw(t, "lost"),
		Force:            rapid.IntRange(0, 4).Draw(t, "force") == 0,
		Config:           Config{Budget: rapid.IntRange(0, 20).Draw(t, "budget")},
	}
	for range rapid.IntRange(0, 3).Draw(t, "pins") {
		if table.Pins == nil {
			table.Pins = map[seq.SectionID]string{}
		}
		id := seq.SectionID(rapid.IntRange(0, sections-1).Draw(t, "pinned section"))
		table.Pins[id] = rapid.SampledFrom(live).Draw(t, "pinned to").Name
	}
	for range rapid.IntRange(0, sections).Draw(t, "effective owners") {
		in.Owners = append(in.Owners, rapid.SampledFrom(live).Draw(t, "effective").Name)
	}
	return in
}

func TestEverySectionHasALiveOwnerAndDistinctPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		next, _, _ := apply(t, in)
		live := map[string]bool{}
		for _, n := range in.Live {
			live[n.Name] = true
		}
		for id, p := range next.Sections {
			taken := map[int16]bool{}
			for _, i := range p.Candidates() {
				if i == seq.NoNode {
					continue
				}
				if taken[i] || !live[next.Nodes[i].Name] {
					t.Fatalf("section %d is placed on %v of %v, want distinct live nodes", id, p, next.Nodes)
				}
				taken[i] = true
			}
			if p.Owner == seq.NoNode {
				t.Fatalf("section %d has no owner though %d nodes are live", id, len(in.Live))
			}
		}
	})
}

func TestThePlanLeavesItsInputAloneAndRepeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		copied := in
		copied.Table = in.Table.Clone()
		copied.Live = append([]Node(nil), in.Live...)
		copied.Owners = append([]string(nil), in.Owners...)
		next, changes := Plan(in)
		if diff := cmp.Diff(copied, in); diff != "" {
			t.Fatalf("the input was changed (-want +got):\n%s", diff)
		}
		copied.Live = rapid.Permutation(copied.Live).Draw(t, "other order")
		next2, changes2 := Plan(copied)
		if diff := cmp.Diff(next, next2); diff != "" {
			t.Fatalf("a second plan differs (-first +second):\n%s", diff)
		}
		if diff := cmp.Diff(changes, changes2); diff != "" {
			t.Fatalf("the reasons of a second plan differ (-first +second):\n%s", diff)
		}
	})
}

func TestRepeatedPlansReachAFixedPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		in.Table, _, _ = apply(t, in)
		in.Force = false
		in.Table = settle(t, in)
		in.Owners = nil // without them the owners chosen must stay as well
		if next, changes := Plan(in); next != nil {
			t.Fatalf("a settled table was changed: %v", changes)
		}
	})
}

func TestADeadNodeMovesItsOwnSectionsOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := drawNodes(t, "nodes")
		for i := range nodes {
			nodes[i].AliveFor = 0 // no node is due for balance
		}
		sections := rapid.IntRange(1, 80).Draw(t, "sections")
		table := firstTable(t, sections, nodes...)
		if len(nodes) < 2 {
			return
		}
		dead := rapid.IntRange(0, len(nodes)-1).Draw(t, "dead")
		left := append(append([]Node(nil), nodes[:dead]...), nodes[dead+1:]...)
		force := rapid.Bool().Draw(t, "by force")
		next, _, _ := apply(t, Input{Table: table, Sections: sections, Live: left, Force: force})
		was, is := owners(table), owners(next)
		for id := range was {
			if was[id] != nodes[dead].Name && is[id] != was[id] {
				t.Fatalf("section %d went from %s to %s when %s died", id, was[id], is[id], nodes[dead].Name)
			}
			if force && len(table.Zones()) > 1 {
				continue // afresh: the next by rendezvous, in whatever zone
			}
			if was[id] == nodes[dead].Name && is[id] != nameAt(table, table.Sections[id].Standby) {
				t.Fatalf("section %d of the dead node went to %s, want its standby", id, is[id])
			}
		}
	})
}

func TestTheFirstTableFollowsTheWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const sections = 4096
		nodes := drawNodes(t, "nodes")
		total := 0.0
		for i := range nodes {
			nodes[i].Weight = rapid.Uint32Range(50, 400).Draw(t, "share")
			total += float64(nodes[i].Weight)
		}
		got := held(firstTable(t, sections, nodes...))
		for _, n := range nodes {
			share := float64(n.Weight) / total
			want := sections * share
			// Seven standard deviations of a binomial draw: no honest hash fails it.
			if tolerance := 7 * math.Sqrt(want*(1-share)); math.Abs(float64(got[n.Name])-want) > tolerance {
				t.Fatalf("node %s of weight share %.3f holds %d sections, want %.0f +- %.0f", n.Name, share, got[n.Name], want, tolerance)
			}
		}
	})
}

func TestTheBudgetBoundsWhatLeavesAFitOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		in.Force = false
		budget := in.Config.withDefaults(in.Sections).Budget
		next, _, _ := apply(t, in)
		fit, old := map[string]bool{}, map[string]bool{}
		for _, n := range in.Live {
			i := in.Table.Index(n.Name)
			fit[n.Name] = i < 0 || !in.Table.Nodes[i].Drained
			old[n.Name] = n.AliveFor >= DefaultDwell
		}
		was, is, moved := owners(in.Table), owners(next), 0
		for id := range was {
			if _, pinned := in.Table.Pins[seq.SectionID(id)]; pinned || !fit[was[id]] || was[id] == is[id] {
				continue
			}
			moved++
			if !old[is[id]] {
				t.Fatalf("section %d moved for balance to %s before its dwell time", id, is[id])
			}
		}
		if moved > budget {
			t.Fatalf("%d sections left a fit owner in one plan, want at most %d", moved, budget)
		}
	})
}

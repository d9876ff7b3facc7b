package placement

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// One plan gives every section the owner that it would have if no node had a zone, from the same
// table: after a death, a drain, a join, by force, and for balance.
func TestAPlanHasTheSameOwnersWithoutZonesWhateverTheTableWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		plain := in
		plain.Table, plain.Live = in.Table.Clone(), slices.Clone(in.Live)
		for i := range plain.Table.Nodes {
			plain.Table.Nodes[i].Zone = ""
		}
		for i := range plain.Live {
			plain.Live[i].Zone = ""
		}
		next, _, _ := apply(t, in)
		without, _, _ := apply(t, plain)
		if is, was := owners(next), owners(without); !slices.Equal(is, was) {
			t.Fatalf("zones move sections: %v, without them %v", is, was)
		}
	})
}

// Zones of unequal nodes: after the loss of one the others own its sections by their weights, from
// the first plan on, keep what they had, and have standbys in zones apart from each other.
func TestTheLossOfAZoneOfUnequalNodesIsCarriedByWeight(t *testing.T) {
	const sections = 4096
	for _, row := range []map[string][]uint32{ // weights by zone
		{"a": {100, 100}, "b": {100}, "c": {100}},
		{"a": {100, 100, 100}, "b": {100, 100}, "c": {100}},
		{"a": {100, 100}, "b": {200}, "c": {50, 150}},
		{"a": {300}, "b": {100, 100, 100}, "c": {100, 200}},
	} {
		counts, weights := map[string]int{}, map[string]uint32{}
		for zone, of := range row {
			counts[zone] = len(of)
			for i, w := range of {
				weights[fmt.Sprintf("%s%d", zone, i+1)] = w
			}
		}
		nodes := inZones(time.Hour, counts)
		for i := range nodes {
			nodes[i].Weight = weights[nodes[i].Name]
		}
		table := firstTable(t, sections, nodes...)
		for zone := range row {
			t.Run(fmt.Sprint(row, " without ", zone), func(t *testing.T) {
				left := without(nodes, zone)
				fit, total := map[string]bool{}, uint32(0)
				for _, n := range left {
					fit[n.Name] = true
					total += n.Weight
				}
				next, _, _ := apply(t, Input{Table: table, Sections: sections, Live: left, KnownNodes: len(nodes), Config: Config{Budget: sections / 2}})
				has := held(next)
				for _, n := range left {
					want := float64(sections) * float64(n.Weight) / float64(total)
					if got := float64(has[n.Name]); got > 1.2*want || got < want/1.2 {
						t.Errorf("%s owns %.0f sections, want %.0f, within a factor of 1.2", n.Name, got, want)
					}
				}
				now := owners(next)
				for id, name := range owners(table) {
					if fit[name] && now[id] != name {
						t.Fatalf("section %d went from %s, which is alive, to %s", id, name, now[id])
					}
				}
				wantApart(t, next, fit)
			})
		}
	}
}

// A node that joins a zone, and one that is drained and comes back, leave no plan between them by
// which a standby is with its owner; and afterwards each zone's loss is carried by the others.
func TestAJoinAndADrainLeaveStandbysInOtherZones(t *testing.T) {
	const sections = 1024
	for _, row := range []map[string]int{{"a": 1, "b": 1}, {"a": 2, "b": 1, "c": 1}, {"a": 3, "b": 2, "c": 1}} {
		for zone := range row {
			t.Run(fmt.Sprint(row, " and one more in ", zone), func(t *testing.T) {
				in := Input{Sections: sections, Live: inZones(time.Hour, row), Config: Config{Budget: 16}}
				in.Table = firstTable(t, sections, in.Live...)
				plan := func() {
					t.Helper()
					in.KnownNodes = len(in.Live)
					for range 4 * sections {
						fit := map[string]bool{}
						for _, n := range in.Live {
							at := in.Table.Index(n.Name)
							fit[n.Name] = at < 0 || !in.Table.Nodes[at].Drained
						}
						next, _, changed := apply(t, in)
						if wantApart(t, next, fit); !changed {
							return
						}
						in.Table = next
					}
					t.Fatal("plans do not come to an end")
				}
				in.Live = append(in.Live, Node{Name: zone + "9", Addr: "x:1", Session: 99, Weight: 100, Zone: zone})
				plan() // right after it has joined
				in.Live[len(in.Live)-1].AliveFor = time.Hour
				plan()
				for _, drained := range []bool{true, false} {
					at := in.Table.Index("a1")
					in.Table = in.Table.Clone()
					in.Table.Nodes[at].Drained = drained
					plan()
				}
				for lost := range row {
					left := without(in.Live, lost)
					got, want := takenOver(in.Table, lost), float64(sections)/float64(len(left))
					for _, n := range left {
						if has := float64(got[n.Name]); has > 1.5*want || has < want/1.5 {
							t.Errorf("without zone %s, %s has %.0f sections, want %.0f, within a factor of 1.5", lost, n.Name, has, want)
						}
					}
				}
			})
		}
	}
}

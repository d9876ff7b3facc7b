package placement

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
)

func TestLosingMoreThanAThirdWithinAMinuteFreezes(t *testing.T) {
	rows := []struct {
		lost, known int
		want        bool
	}{
		{0, 0, false}, {0, 3, false}, {1, 2, false}, {1, 3, false}, {2, 3, true}, {1, 4, false}, {2, 4, true},
		{2, 6, false}, {3, 6, true}, {3, 9, false}, {4, 9, true}, {7, 21, false}, {8, 21, true}, {33, 99, false}, {34, 99, true},
	}
	for _, row := range rows {
		table := firstTable(t, 64, alive(0, "a", "b", "c")...)
		next, changes := Plan(Input{Table: table, Sections: 64, Live: alive(0, "a", "b"), LostWithinMinute: row.lost, KnownNodes: row.known})
		if got := next.Frozen != ""; got != row.want {
			t.Errorf("%d of %d lost: got frozen %v, want %v", row.lost, row.known, got, row.want)
			continue
		}
		if !row.want {
			continue
		}
		want := table.Clone()
		want.Frozen = next.Frozen
		if diff := cmp.Diff(want, next); diff != "" {
			t.Errorf("a freeze changed more than the freeze (-want +got):\n%s", diff)
		}
		if len(changes) != 1 || changes[0].Kind != KindFreeze || !strings.HasPrefix(changes[0].Reason, "mass suspicion") {
			t.Errorf("got changes %v, want one freeze for mass suspicion", changes)
		}
	}
}

func TestThePartThatFreezesCanBeSet(t *testing.T) {
	table := firstTable(t, 64, alive(0, "a", "b", "c")...)
	in := Input{Table: table, Sections: 64, Live: alive(0, "a", "b"), LostWithinMinute: 1, KnownNodes: 2, Config: Config{MassFraction: 0.5}}
	if next, _ := Plan(in); next.Frozen != "" {
		t.Errorf("frozen by the loss of half, want more than half to be needed")
	}
}

func TestBeforeTheFirstTableNothingIsFrozen(t *testing.T) {
	next, _, changed := apply(t, Input{Table: &seq.RouteTable{}, Sections: 8, Live: alive(0, "a"), LostWithinMinute: 2, KnownNodes: 2})
	if !changed || next.Frozen != "" {
		t.Errorf("got %+v, want a first table that is not frozen", next)
	}
}

func TestAFreezeIsLiftedWhenTheNodesAreBackOrByForce(t *testing.T) {
	rows := []struct {
		name string
		live []Node
		lost int
		want bool
	}{
		{"a loss still counts", alive(0, "a", "b", "c"), 1, false},
		{"too few are live", alive(0, "a"), 0, false},
		{"two thirds are live", alive(0, "a", "b"), 0, true},
		{"all are live", alive(0, "a", "b", "c"), 0, true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			table := firstTable(t, 64, alive(0, "a", "b", "c")...)
			table.Frozen = "mass suspicion"
			next, changes := Plan(Input{Table: table, Sections: 64, Live: row.live, LostWithinMinute: row.lost, KnownNodes: 3})
			if !row.want {
				if next != nil {
					t.Errorf("got %v, want nothing planned while frozen", changes)
				}
				return
			}
			want := table.Clone()
			want.Frozen = ""
			if diff := cmp.Diff(want, next); diff != "" {
				t.Errorf("table (-want +got):\n%s", diff)
			}
			if len(changes) != 1 || changes[0].Kind != KindUnfreeze {
				t.Errorf("got %v, want one unfreeze", changes)
			}
		})
	}
	t.Run("by force", func(t *testing.T) {
		table := firstTable(t, 64, alive(0, "a", "b", "c")...)
		table.Frozen = "mass suspicion"
		next, changes, _ := apply(t, Input{Table: table, Sections: 64, Live: alive(0, "a"), LostWithinMinute: 2, KnownNodes: 3, Force: true})
		if next.Frozen != "" || held(next)["a"] != 64 {
			t.Errorf("got frozen %q and %v, want everything placed on the one live node", next.Frozen, held(next))
		}
		if changes[0].Kind != KindUnfreeze {
			t.Errorf("got %v, want the unfreeze first", changes)
		}
	})
	t.Run("by force with nobody live", func(t *testing.T) {
		table := firstTable(t, 64, alive(0, "a", "b", "c")...)
		table.Frozen = "mass suspicion"
		next, _, _ := apply(t, Input{Table: table, Sections: 64, Force: true, LostWithinMinute: 3, KnownNodes: 3})
		if diff := cmp.Diff(owners(table), owners(next)); next.Frozen != "" || diff != "" {
			t.Errorf("frozen %q, owners (-want +got):\n%s", next.Frozen, diff)
		}
	})
}

// TestOneLossOfThreeNeverFreezesWhileItIsHandled feeds the known nodes of the
// planned table back, as the arbiter does.
func TestOneLossOfThreeNeverFreezesWhileItIsHandled(t *testing.T) {
	in := Input{Table: firstTable(t, 64, alive(time.Hour, "a", "b", "c")...), Sections: 64, Live: alive(time.Hour, "a", "b")}
	for _, lost := range []int{1, 1, 1, 0, 0} {
		in.LostWithinMinute, in.KnownNodes = lost, max(len(in.Table.Nodes), len(in.Live))
		in.Table, _, _ = apply(t, in)
		if in.Table.Frozen != "" {
			t.Fatalf("frozen by one loss of three: %s", in.Table.Frozen)
		}
	}
	if got := in.Table.Index("c"); got != seq.NoNode {
		t.Errorf("the dead node is still at index %d", got)
	}
}

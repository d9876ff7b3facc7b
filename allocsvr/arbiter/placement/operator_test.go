package placement

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
)

func TestDrainMarksKnownNodesAndLeavesOneUndrained(t *testing.T) {
	rows := []struct {
		name    string
		drained []bool // of a, b before
		node    string
		undo    bool
		want    []bool
		err     error
	}{
		{"drain", []bool{false, false}, "b", false, []bool{false, true}, nil},
		{"drain again", []bool{false, true}, "b", false, []bool{false, true}, nil},
		{"undrain", []bool{false, true}, "b", true, []bool{false, false}, nil},
		{"undrain what is not drained", []bool{false, false}, "b", true, []bool{false, false}, nil},
		{"undrain when all are drained", []bool{true, true}, "b", true, []bool{true, false}, nil},
		{"drain the last", []bool{false, true}, "a", false, nil, seq.ErrNodeUnfit},
		{"drain an unknown node", []bool{false, false}, "z", false, nil, seq.ErrUnknownNode},
		{"undrain an unknown node", []bool{false, false}, "z", true, nil, seq.ErrUnknownNode},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			table := firstTable(t, 8, alive(0, "a", "b")...)
			for i, d := range row.drained {
				table.Nodes[i].Drained = d
			}
			before := table.Clone()
			got, err := Drain(table, row.node, row.undo)
			if !errors.Is(err, row.err) || (err == nil) != (row.err == nil) {
				t.Fatalf("got error %v, want %v", err, row.err)
			}
			if diff := cmp.Diff(before, table); diff != "" {
				t.Errorf("the table itself was changed (-want +got):\n%s", diff)
			}
			if err != nil {
				return
			}
			want := before.Clone()
			for i, d := range row.want {
				want.Nodes[i].Drained = d
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("table (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMovePinsASectionToANodeThatCanServeIt(t *testing.T) {
	rows := []struct {
		name    string
		section seq.SectionID
		node    string
		want    seq.Placement // of section 0
		pin     string
		err     error
	}{
		{"to the owner", 0, "a", seq.Placement{Owner: 0, Standby: 1, Standby2: 2}, "a", nil},
		{"to a standby", 0, "b", seq.Placement{Owner: 1, Standby: 0, Standby2: 2}, "b", nil},
		{"to the second standby", 0, "c", seq.Placement{Owner: 2, Standby: 1, Standby2: 0}, "c", nil},
		{"to another node", 0, "d", seq.Placement{Owner: 3, Standby: 1, Standby2: 2}, "d", nil},
		{"unpin", 0, "", seq.Placement{Owner: 0, Standby: 1, Standby2: 2}, "", nil},
		{"unknown section", 2, "a", seq.Placement{}, "", seq.ErrUnknownSection},
		{"unpin an unknown section", 2, "", seq.Placement{}, "", seq.ErrUnknownSection},
		{"unknown node", 0, "z", seq.Placement{}, "", seq.ErrUnknownNode},
		{"drained node", 0, "e", seq.Placement{}, "", seq.ErrNodeUnfit},
		{"dead node", 0, "f", seq.Placement{}, "", seq.ErrNodeUnfit},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			table := &seq.RouteTable{Version: 4, Sections: []seq.Placement{{Owner: 0, Standby: 1, Standby2: 2}, {Owner: 1, Standby: 0, Standby2: 2}}}
			for _, n := range alive(0, "a", "b", "c", "d", "e", "f") {
				table.Nodes = append(table.Nodes, seq.Node{Name: n.Name, Addr: n.Addr, Session: n.Session, Weight: 100, Drained: n.Name == "e"})
			}
			if row.node == "" {
				table.Pins = map[seq.SectionID]string{0: "a"}
			}
			before := table.Clone()
			got, err := Move(table, row.section, row.node, func(name string) bool { return name != "f" })
			if !errors.Is(err, row.err) || (err == nil) != (row.err == nil) {
				t.Fatalf("got error %v, want %v", err, row.err)
			}
			if diff := cmp.Diff(before, table); diff != "" {
				t.Errorf("the table itself was changed (-want +got):\n%s", diff)
			}
			if err != nil {
				return
			}
			if got.Sections[0] != row.want || got.Pins[0] != row.pin || got.Sections[1] != table.Sections[1] {
				t.Errorf("got %v pinned to %q, want %v pinned to %q", got.Sections, got.Pins[0], row.want, row.pin)
			}
			live := alive(0, "a", "b", "c", "d", "e")
			if next, changes := Plan(Input{Table: got, Sections: 2, Live: live}); next != nil && next.Sections[0] != row.want {
				t.Errorf("the next plan undid the move: %v", changes)
			}
		})
	}
}

func TestAMoveWithinAnEmptyTableIsRefused(t *testing.T) {
	if _, err := Move(&seq.RouteTable{}, 0, "a", func(string) bool { return true }); !errors.Is(err, seq.ErrUnknownSection) {
		t.Errorf("got %v, want %v", err, seq.ErrUnknownSection)
	}
}

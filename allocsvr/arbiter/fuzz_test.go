package arbiter

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// FuzzRouteTable: a table that was taken is sound, and travels on unchanged.
func FuzzRouteTable(f *testing.F) {
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: 3})
	if err != nil {
		f.Fatal(err)
	}
	body, err := proto.Marshal(rpc.RoutesToProto(&seq.RouteTable{
		Version: 4, Frozen: "why", Nodes: []seq.Node{{Name: "a", Addr: "h:1", Session: 2, Weight: 100}, {Name: "b", Addr: "h:2", Session: 3, Weight: 50, Drained: true, Leaving: 3}},
		Sections: []seq.Placement{{Owner: 0, Standby: 1, Standby2: seq.NoNode}, {Owner: seq.NoNode, Standby: seq.NoNode, Standby2: seq.NoNode}, {Owner: 1, Standby: 0, Standby2: seq.NoNode}},
		Pins:     map[seq.SectionID]string{2: "b"},
	}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		table, err := decodeRoutes(body, mapping)
		if err != nil {
			if !errors.Is(err, seq.ErrBadTable) {
				t.Fatalf("error of no name: %v", err)
			}
			return
		}
		if err := table.Validate(mapping); err != nil {
			t.Fatalf("a table that is not sound was taken: %v", err)
		}
		again, err := proto.Marshal(rpc.RoutesToProto(table))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeRoutes(again, mapping); err != nil || !cmp.Equal(table, got) {
			t.Fatalf("the table changes on its way (%v): %s", err, cmp.Diff(table, got))
		}
	})
}

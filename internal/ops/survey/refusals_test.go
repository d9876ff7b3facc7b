package survey

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestAStatusTellsWhatNodesRefusedAndWhom(t *testing.T) {
	s := &Survey{Cluster: &Cluster{Table: &seq.RouteTable{Nodes: []seq.Node{{Name: "alloc-1"}, {Name: "alloc-2"}, {Name: "before"}}}, Mapping: seq.Mapping{}},
		Replies: map[string]*pb.StatusReply{
			"alloc-1": {Refused: []*pb.Refusal{{Reason: "quota", Address: "10.0.0.7", Count: 300}, {Reason: "foreign", Address: "10.0.0.8", Count: 9}},
				Stores: []*pb.StoreStatus{{Name: "store-1", Reachable: true, Refused: []*pb.Refusal{{Reason: "unfinished", Address: "other", Count: 4000}}}}},
			"alloc-2": {Refused: []*pb.Refusal{{Reason: "unread", Address: "10.0.0.9", Count: 12}}},
			"before":  {},
		}}
	want := []Refusal{
		{"store", "store-1", "unfinished", "other", 4000}, {"alloc", "alloc-1", "quota", "10.0.0.7", 300},
		{"alloc", "alloc-2", "unread", "10.0.0.9", 12}, {"alloc", "alloc-1", "foreign", "10.0.0.8", 9},
	}
	if diff := cmp.Diff(want, s.refusals()); diff != "" {
		t.Error(diff)
	}
	notes := s.refusalNotes()
	if len(notes) != 3 || !strings.Contains(notes[0], "store store-1 refused 4000 times") || !strings.Contains(notes[1], "quota, from 10.0.0.7") {
		t.Errorf("got %q", notes)
	}
	if all := s.notes(); !slices.Contains(all, notes[0]) {
		t.Errorf("the notes of a status lack %q: %q", notes[0], all)
	}
}

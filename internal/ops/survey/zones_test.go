package survey

import (
	"fmt"
	"strings"
	"testing"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// zonedSurvey returns a Survey of AllocSvr and stores in these zones, as one node reports them.
func zonedSurvey(allocs, stores []string, w uint32, together uint32) *Survey {
	s := &Survey{Cluster: &Cluster{Table: &seq.RouteTable{Version: 1}}, Replies: map[string]*pb.StatusReply{}, Errs: map[string]error{}}
	reply := &pb.StatusReply{Ready: true, Sections: 48, W: w, SectionsOneZone: together}
	for i, zone := range stores {
		name := fmt.Sprint("store-", i)
		reply.Stores = append(reply.Stores, &pb.StoreStatus{Name: name, Reachable: zone != "gone", State: "voting", Zone: zone})
		if zone == "gone" { // it does not answer, and the membership knows where it was
			reply.Stores[i].Zone = ""
			reply.Members = append(reply.Members, &pb.MemberStatus{Name: name, Role: "store", State: "dead", Zone: "c"})
		}
	}
	for i, zone := range allocs {
		name := fmt.Sprint("alloc-", i)
		s.Cluster.Table.Nodes = append(s.Cluster.Table.Nodes, seq.Node{Name: name, Addr: name, Weight: 100, Zone: zone})
		s.Replies[name] = reply
	}
	return s
}

func TestZonesWhoseLossStopsTheClusterAreTold(t *testing.T) {
	for _, row := range []struct {
		allocs, stores []string
		w, together    uint32
		router         string // its zone; empty if there is no router
		problem, note  string // part of a problem or note; empty if there is none
	}{
		{allocs: []string{"a", "b", "c"}, stores: []string{"a", "b", "c"}, w: 2},
		{allocs: []string{"", "", ""}, stores: []string{"", "", ""}, w: 2},
		{allocs: []string{"a", "a"}, stores: []string{"a", "a", "a"}, w: 2},
		{allocs: []string{"a", "b", "c"}, stores: []string{"a", "a", "b"}, w: 2, problem: "the loss of zone a leaves fewer than the 2 stores that a write needs"},
		{allocs: []string{"a", "b", "c"}, stores: []string{"a", "b", "c", "c"}, w: 3, problem: "zone c leaves fewer than the 3 stores"},
		// Of two zones one has a majority; a third is one in which anything is.
		{allocs: []string{"a", "b"}, stores: []string{"a", "b", "a"}, w: 2, note: "the loss of zone a leaves fewer than the 2 stores that a write needs, and there is no third zone"},
		{allocs: []string{"a", "b"}, stores: []string{"a", "b", "a"}, w: 2, router: "c", problem: "the loss of zone a leaves fewer than the 2 stores"},
		{allocs: []string{"a", "b", "c"}, stores: []string{"a", "a", "b"}}, // W is not told by a build of before
		{allocs: []string{"a", "b", "c"}, stores: []string{"a", "c", "gone"}, w: 2, problem: "zone c leaves fewer"},
		{allocs: []string{"a", "b", "c"}, stores: []string{"a", "b", "c"}, w: 2, together: 7, problem: "7 of 48 sections have their standby in their owner's zone"},
		{allocs: []string{"a", "a", "a", "b"}, stores: []string{"a", "b", ""}, w: 2, note: "zone a has 75 % of the AllocSvr by weight: without it the others carry 4.0 times as much"},
		{allocs: []string{"a", "a", "b", "c"}, stores: []string{"a", "b", "c"}, w: 2},
	} {
		s := zonedSurvey(row.allocs, row.stores, row.w, row.together)
		if row.router != "" {
			s.View().Members = append(s.View().Members, &pb.MemberStatus{Name: "router-1", Role: "router", State: "alive", Zone: row.router})
		}
		r := s.Judge()
		has := func(lines []string, what, part string) {
			var found []string
			for _, line := range lines {
				if strings.Contains(line, "zone") {
					found = append(found, line)
				}
			}
			if part == "" && len(found) > 0 || part != "" && !strings.Contains(strings.Join(found, "\n"), part) {
				t.Errorf("AllocSvr in %q, stores in %q, W %d: %s %q, want %q", row.allocs, row.stores, row.w, what, found, part)
			}
		}
		has(r.Problems, "problems", row.problem)
		has(r.Notes, "notes", row.note)
		if row.problem != "" && r.Health != Degraded {
			t.Errorf("AllocSvr in %q, stores in %q: %s", row.allocs, row.stores, r.Health)
		}
	}
}

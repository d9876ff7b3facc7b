package survey

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestWhoMayNotAskIsNotToldToStartTheCluster(t *testing.T) {
	s := &Survey{Errs: map[string]error{"alloc-1": fmt.Errorf("%w: caller/chat calls Status: expected role [operator reader]", seq.ErrForbidden)}}
	s.Cluster = &Cluster{Table: &seq.RouteTable{Nodes: []seq.Node{{Name: "alloc-1"}}}}
	got := s.troubles()
	if len(got) != 1 || !strings.Contains(got[0].what, "caller/chat calls Status") || !strings.Contains(got[0].do, "--token-file") {
		t.Errorf("got %+v", got)
	}
}

func TestARegionWithTheSameIDsIsATroubleThatNamesIt(t *testing.T) {
	got := regionTroubles([]string{"clusters x and y can make the same IDs", "another"})
	if len(got) != 1 || !strings.Contains(got[0].what, "x and y can make the same IDs (and 1 more)") || !strings.Contains(got[0].do, "namespace compare") {
		t.Errorf("got %+v", got)
	}
	if none := regionTroubles(nil); none != nil {
		t.Errorf("without regions: %+v", none)
	}
}

// TestANodeWhoseNameMeansNothingHereIsNotDead has no name of the cluster resolve, as by a port-forward.
func TestANodeWhoseNameMeansNothingHereIsNotDead(t *testing.T) {
	s, lost := newSurvey(twoSets(t)), errors.New("dial tcp: lookup alloc-1.alloc.seqsvr.svc on 10.0.0.2:53: no such host")
	s.Errs["alloc-1"] = lost
	got := s.ownTroubles()
	if len(got) != 1 || got[0].what != "none of 1 AllocSvr is reachable from here: no such host" || got[0].do != "seqctl status" || !strings.Contains(got[0].why, "from a pod") {
		t.Errorf("of all: got %+v", got)
	}
	s.Cluster.Table.Nodes = append(s.Cluster.Table.Nodes, seq.Node{Name: "alloc-2"})
	s.Replies["alloc-2"] = &pb.StatusReply{Ready: true}
	if got = s.nodeTroubles(); len(got) != 1 || got[0].what != "alloc alloc-1 is not reachable from here: no such host" || strings.Contains(got[0].do, "systemctl") {
		t.Errorf("of one: got %+v", got)
	}
}

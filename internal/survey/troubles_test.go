package survey

import (
	"fmt"
	"strings"
	"testing"

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
	got := regionTroubles([]string{`namespace "a": IDs of datacenter 1 "cn" of cluster x can be those of datacenter 1 "sg" of cluster y`, "another"})
	if len(got) != 1 || !strings.Contains(got[0].what, `1 "sg" of cluster y (and 1 more)`) || !strings.Contains(got[0].do, "namespace compare") {
		t.Errorf("got %+v", got)
	}
	if none := regionTroubles(nil); none != nil {
		t.Errorf("without regions: %+v", none)
	}
}

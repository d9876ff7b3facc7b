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
	got := regionTroubles([]string{"clusters x and y can make the same IDs", "another"})
	if len(got) != 1 || !strings.Contains(got[0].what, "x and y can make the same IDs (and 1 more)") || !strings.Contains(got[0].do, "namespace compare") {
		t.Errorf("got %+v", got)
	}
	if none := regionTroubles(nil); none != nil {
		t.Errorf("without regions: %+v", none)
	}
}

package survey

import (
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// twoSets is a cluster of 8 sections, of which the Set at hand, main, has the first two.
func twoSets(t *testing.T) *Cluster {
	t.Helper()
	mapping, err := seq.NewMapping(seq.Space{Name: seq.DefaultSpace, Sections: 8})
	if err != nil {
		t.Fatal(err)
	}
	m := sets.Map{Version: 3, Sets: []sets.Set{{Name: "main", Cluster: "a"}, {Name: "b", Cluster: "b", Addrs: []string{"127.0.0.1:1"}}},
		In: []uint16{0, 0, 1, 1, 1, 1, 1, 1}, By: make([]uint64, 8), Ceilings: make([]uint64, 8)}
	return &Cluster{ID: "a", Set: "main", Sets: m, Mapping: mapping, Table: &seq.RouteTable{Nodes: []seq.Node{{Name: "alloc-1", Addr: "127.0.0.1:1"}}}}
}

func TestASectionOfAnotherSetIsElsewhere(t *testing.T) {
	c := twoSets(t)
	if s, elsewhere := c.Elsewhere(1); elsewhere {
		t.Errorf("section 1 is in %+v", s)
	}
	if s, elsewhere := c.Elsewhere(2); !elsewhere || s.Name != "b" {
		t.Errorf("section 2 is in %+v, elsewhere %v", s, elsewhere)
	}
	if got := c.Here(); got != 2 {
		t.Errorf("%d sections are here, want 2", got)
	}
	c.Set, c.Sets = "", sets.Map{}
	if _, elsewhere := c.Elsewhere(2); elsewhere || c.Here() != 8 {
		t.Errorf("alone: %d sections here, section 2 elsewhere %v", c.Here(), elsewhere)
	}
}

func TestOnlyAMoveThatIsOpenForLongIsATrouble(t *testing.T) {
	now := time.Now()
	s := newSurvey(twoSets(t))
	s.Cluster.Sets.Moves = []sets.Move{
		{ID: 4, From: "b", To: "main", Sections: []sets.Range{{First: 2, Sections: 2}}, Begun: now.Add(-2 * time.Minute).UnixMilli()},
		{ID: 5, From: "b", To: "main", Sections: []sets.Range{{First: 4, Sections: 1}}, Begun: now.Add(-time.Second).UnixMilli()},
	}
	got := s.moveTroubles(now)
	if len(got) != 1 || got[0].breaks || got[0].do != "seqctl set move --id 4" || !strings.Contains(got[0].what, "move 4 of 2 sections from Set b to main") || !strings.Contains(got[0].why, "abort --id 4") {
		t.Errorf("got %+v", got)
	}
}

func TestASetThatDoesNotAnswerIsToldIfItHasSections(t *testing.T) {
	for sections, breaks := range map[bool]bool{true: true, false: false} {
		s, conns := newSurvey(twoSets(t)), NewConns()
		defer conns.Close()
		if !sections {
			s.Cluster.Sets.In = nil
		}
		s.AskSets(t.Context(), conns, time.Second)
		if len(s.sets) != 2 || s.sets[1].Health != Failed || len(s.setTroubles) != 1 || s.setTroubles[0].breaks != breaks || !strings.Contains(s.setTroubles[0].what, "Set b") {
			t.Errorf("with sections %v: got %+v and %+v", sections, s.sets, s.setTroubles)
		}
	}
}

package arbiter

import (
	"log/slog"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter/placement"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

func TestANodeThatIsBackBeforeItsFormerSessionIsKnownToHaveEndedHasBeenUpForAMoment(t *testing.T) {
	const lease = time.Second
	now := clock.NewManual(time.Hour)
	var present quorum.SessionView
	r := New(Config{Name: "a", Clock: now, Logger: slog.New(slog.DiscardHandler), Sections: func() int { return 1 },
		Present: func() map[string]quorum.SessionView { return map[string]quorum.SessionView{"b": present} }})
	see := func(watch bool, b quorum.SessionView) time.Duration {
		t.Helper()
		if present = b; watch {
			r.watch(now.Now())
		}
		for _, n := range r.input(&seq.RouteTable{}, false).Live {
			if n.Name == "b" {
				return n.AliveFor
			}
		}
		t.Fatal("b is not live")
		return 0
	}
	was := quorum.SessionView{Session: 1, Name: "b", Addr: "b", FreeAt: now.Now() + lease}
	if got := see(false, was); got != 0 {
		t.Errorf("a session that was never looked at counts as up for %v, want it new", got)
	}
	see(true, was)
	now.Advance(time.Hour)
	is := quorum.SessionView{Session: 2, Name: "b", Addr: "b", FreeAt: now.Now() + lease}
	for _, watch := range []bool{false, true} {
		if got := see(watch, is); got != 0 {
			t.Errorf("the new session counts as up for %v, want it new", got)
		}
	}
	now.Advance(time.Minute)
	if got := see(true, is); got != time.Minute {
		t.Errorf("the new session counts as up for %v, want a minute", got)
	}
}

// Of a table and its arbiter, each may know of added spaces that the other does not.
func TestATableNeverGetsShorter(t *testing.T) {
	const owner, sections = "a", 3
	now := clock.NewManual(time.Hour)
	r := New(Config{Name: owner, Clock: now, Logger: slog.New(slog.DiscardHandler), Sections: func() int { return sections },
		Present: func() map[string]quorum.SessionView {
			return map[string]quorum.SessionView{owner: {Session: 1, Name: owner, Addr: owner}}
		}, Awaited: func(string, time.Duration) bool { return false }})
	for _, knows := range []int{1, sections, sections + 4} {
		table := &seq.RouteTable{Version: 1, Nodes: []seq.Node{{Name: owner, Addr: owner, Session: 1, Weight: 100}}}
		table.Cover(knows)
		next, _ := placement.Plan(r.input(table, false))
		if next == nil || len(next.Sections) != max(knows, sections) {
			t.Fatalf("a table of %d sections: got %+v", knows, next)
		}
		for id := range next.Sections {
			if n, ok := next.Owner(seq.SectionID(id)); !ok || n.Name != owner {
				t.Errorf("a table of %d sections: section %d has no owner", knows, id)
			}
		}
	}
}

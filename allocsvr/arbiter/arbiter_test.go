package arbiter

import (
	"log/slog"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

func TestANodeThatIsBackBeforeItsFormerSessionIsKnownToHaveEndedHasBeenUpForAMoment(t *testing.T) {
	const lease = time.Second
	now := clock.NewManual(time.Hour)
	var present quorum.SessionView
	r := New(Config{Name: "a", Clock: now, Logger: slog.New(slog.DiscardHandler), Sections: 1,
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

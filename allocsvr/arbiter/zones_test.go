package arbiter

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// If the nodes of one of three zones are lost, the arbiter goes on planning, because standbys are
// elsewhere. If nodes of several zones, or of one of two zones, are lost at once, the network may have
// failed.
func TestTheNodesOfAZoneThatGoTogetherFreezeNothing(t *testing.T) {
	const lease = time.Second
	for _, row := range []struct {
		zones []string // of the nodes n0, n1 ...
		lost  []int
		want  int
	}{
		{[]string{"a", "a", "b", "b", "c", "c"}, []int{0, 1}, 1},
		{[]string{"a", "a", "b", "c"}, []int{0, 1}, 1},
		{[]string{"a", "a", "b", "b", "c", "c"}, []int{1, 2}, 2},
		{[]string{"a", "a", "b", "b"}, []int{0, 1}, 2},
		{[]string{"a", "", "b", "c"}, []int{0, 1}, 2},
		{[]string{"", "", "", ""}, []int{0, 1}, 2},
		{[]string{"a", "b", "c"}, nil, 0},
	} {
		now := clock.NewManual(time.Hour)
		present := map[string]quorum.SessionView{}
		table := &seq.RouteTable{Version: 1}
		for i, zone := range row.zones {
			name := fmt.Sprint("n", i)
			present[name] = quorum.SessionView{Session: seq.Session(i + 1), Name: name, Addr: name, FreeAt: now.Now() + lease}
			table.Nodes = append(table.Nodes, seq.Node{Name: name, Addr: name, Session: seq.Session(i + 1), Weight: 100, Zone: zone})
		}
		r := New(Config{Name: "x", Clock: now, Logger: slog.New(slog.DiscardHandler), Sections: func() int { return 8 },
			Present: func() map[string]quorum.SessionView { return present }, Awaited: func(string, time.Duration) bool { return false }})
		r.watch(now.Now())
		now.Advance(2 * lease)
		for _, i := range row.lost {
			delete(present, fmt.Sprint("n", i))
		}
		r.watch(now.Now())
		in := r.input(table, false)
		if in.LostWithinMinute != row.want {
			t.Errorf("zones %q, lost %v: counted as %d, want %d", row.zones, row.lost, in.LostWithinMinute, row.want)
		}
	}
}

package drills

import (
	"strings"
	"testing"
)

func TestAZoneThatIsKilledIsTakenOverAndTheOthersCarryTheLoad(t *testing.T) {
	r := run(t, "kill-zone", "--settle", "3s")
	r.wants(t, "lease ended", "taken over", "first answer")
	killed := map[string]bool{} // kinds of nodes
	for _, m := range r.Timeline {
		if m.Event == "fault" {
			kind, _, _ := strings.Cut(m.Subject, "-")
			killed[kind] = true
		}
	}
	if r.count("fault") != 3 || len(killed) != 3 {
		t.Errorf("killed %v, want a store, an AllocSvr and a router: %v", killed, r.Timeline)
	}
	if r.After < r.Before/2 {
		t.Errorf("%.0f answers a second once all was served again, %.0f before the fault", r.After, r.Before)
	}
}

package drills

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAKilledAllocIsTakenOverWithoutARepeatedNumber(t *testing.T) {
	page := filepath.Join(t.TempDir(), "kill.html")
	r := run(t, "kill-alloc", "--html", page)
	r.wants(t, "lease ended", "taken over", "first answer")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "drill kill-alloc", "taken over", "</html>"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	for _, foreign := range []string{"http:", "https:", "<script", "NaN"} {
		if strings.Contains(string(text), foreign) {
			t.Errorf("%q is on the page", foreign)
		}
	}
}

func TestASupervisedAllocIsTakenOverWhenItDies(t *testing.T) {
	run(t, "kill-alloc", "--supervise").wants(t, "lease ended", "taken over", "first answer")
}

func TestAPausedAllocAnswersNothingOldWhenItWakesUp(t *testing.T) {
	r := run(t, "pause-alloc")
	if faults, mended := r.count("fault"), r.count("mended"); faults != 2 || mended != 2 {
		t.Errorf("%d pauses and %d ends of pauses, want 2 and 2: %v", faults, mended, r.Timeline)
	}
}

func TestAKilledStoreIsNotMissed(t *testing.T) {
	run(t, "kill-store").wants(t, "mended")
}

func TestWithoutAQuorumItRefusesAndServesAgainWhenOneStoreIsBack(t *testing.T) {
	r := run(t, "kill-two-stores")
	r.wants(t, "refused", "mended", "all served")
	for _, m := range r.Timeline {
		if m.Event == "refused" && (!strings.HasPrefix(m.Detail, "Unavailable: ") || len(m.Detail) < 20) {
			t.Errorf("refused with %q, want Unavailable and the reason", m.Detail)
		}
	}
}

func TestAKilledRouterCostsNoCallerAnError(t *testing.T) {
	run(t, "kill-router").wants(t, "mended")
}

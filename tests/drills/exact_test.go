package drills

import "testing"

// once runs a drill in an exact space, and wants every request repeated or looked up there.
func once(t *testing.T, name string, flags ...string) report {
	t.Helper()
	r := run(t, name, append([]string{"--space", "orders"}, flags...)...)
	checkOnce(t, r)
	return r
}

func checkOnce(t *testing.T, r report) {
	t.Helper()
	x := r.Exact
	if x == nil {
		t.Fatal("nothing is told of the exact space")
	}
	t.Logf("%+v", *x)
	if x.Holes != 0 || x.TwoAnswers != 0 || x.Unanswered != 0 || r.Gaps != 0 {
		t.Errorf("%+v, %d gaps: want no hole, no second answer and no request without one", *x, r.Gaps)
	}
	if x.IDs == 0 || x.LookedUp != x.IDs || x.Repeated == 0 || x.Replayed == 0 {
		t.Errorf("%+v: want requests, some repeated and replayed, and each looked up", *x)
	}
}

func TestAKilledAllocLeavesNoHoleInAnExactSpace(t *testing.T) {
	once(t, "kill-alloc").wants(t, "taken over", "first answer")
}

func TestADrainedAllocLeavesNoHoleInAnExactSpace(t *testing.T) {
	once(t, "drain-alloc").wants(t, "taken over", "all served")
}

func TestExactSpacesOutliveAllProcessesKilledAtOnce(t *testing.T) {
	r := once(t, "kill-all", "--times", "2")
	if faults := r.count("fault"); faults != 2*8 {
		t.Errorf("%d processes were killed, want 3 stores, 3 allocs and 2 routers twice", faults)
	}
}

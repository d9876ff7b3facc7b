package drills

import "testing"

// once runs a drill in an exact space, and wants every request repeated or looked up there.
func once(t *testing.T, space, name string, flags ...string) report {
	t.Helper()
	r := run(t, name, append([]string{"--space", space}, flags...)...)
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
	once(t, "orders", "kill-alloc").wants(t, "taken over", "first answer")
}

func TestADrainedAllocLeavesNoHoleInAnExactSpace(t *testing.T) {
	r := once(t, "orders:tickets=2s", "drain-alloc")
	r.wants(t, "taken over", "all served")
	checkReading(t, r)
}

func TestExactSpacesOutliveAllProcessesKilledAtOnce(t *testing.T) {
	r := once(t, "orders", "kill-all", "--times", "2")
	if faults := r.count("fault"); faults != 2*8 {
		t.Errorf("%d processes were killed, want 3 stores, 3 allocs and 2 routers twice", faults)
	}
}

func TestAKilledAllocMisleadsNoReader(t *testing.T) {
	r := run(t, "kill-alloc", "--space", "inbox:mode=ordered,tickets=3s")
	r.wants(t, "taken over", "first answer")
	checkReading(t, r)
	if r.Reading.Unknown == 0 {
		t.Error("the new owners knew all marks at once")
	}
}

// checkReading wants that writers and readers were at work, and that what docs/reading.md promises was kept.
func checkReading(t *testing.T, r report) {
	t.Helper()
	x := r.Reading
	if x == nil {
		t.Fatal("nothing is told of the tickets")
	}
	t.Logf("%+v", *x)
	if x.Lost+x.Unfenced+x.Fell+x.Held+x.Missed > 0 {
		t.Errorf("%+v: want R1 to R4 kept: %v", *x, r.Examples)
	}
	if x.Tickets == 0 || x.Committed == 0 || x.Dead == 0 || x.Marks == 0 || x.Updates == 0 {
		t.Errorf("%+v: want tickets, some of writers that died, marks and updates", *x)
	}
}

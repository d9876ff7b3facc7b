package drills

import "testing"

func TestARestartedAllocFailsNoCall(t *testing.T) {
	run(t, "restart-alloc").wants(t, "taken over", "mended", "all served")
}

func TestADrainedAllocFailsNoCall(t *testing.T) {
	r := run(t, "drain-alloc")
	r.wants(t, "taken over", "table", "all served")
	if a := r.Account; a == nil || a.Answered == 0 || a.Skipped > 0 && a.Lapses == 0 {
		t.Errorf("got %+v, want every number that no caller got to have been handed out all the same", a)
	}
}

func TestARollingRestartFailsNoCall(t *testing.T) {
	r := run(t, "rolling-restart")
	if faults := r.count("fault"); faults != 8 {
		t.Errorf("%d nodes were restarted, want 3 stores, 3 allocs and 2 routers", faults)
	}
}

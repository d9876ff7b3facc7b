package drills

import "testing"

func TestARestartedAllocFailsNoCall(t *testing.T) {
	run(t, "restart-alloc").wants(t, "taken over", "mended", "all served")
}

func TestADrainedAllocFailsNoCall(t *testing.T) {
	run(t, "drain-alloc").wants(t, "taken over", "table", "all served")
}

func TestARollingRestartFailsNoCall(t *testing.T) {
	r := run(t, "rolling-restart")
	if faults := r.count("fault"); faults != 8 {
		t.Errorf("%d nodes were restarted, want 3 stores, 3 allocs and 2 routers", faults)
	}
}

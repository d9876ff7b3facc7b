package sim

import (
	"testing"
	"time"
)

// TestSetsBreakNoPromise is a short look at runs with two Sets, between which sections move.
func TestSetsBreakNoPromise(t *testing.T) {
	runs := 3
	if testing.Short() {
		runs = 1
	}
	var total Report
	for seed := range uint64(runs) {
		o := OptionsOf(seed + 1).On(SetsEngine)
		o.Length = 100 * time.Second
		r := simulate(t, o)
		report(t, r)
		total.Add(r)
	}
	t.Logf("%v", total)
	if total.Stats.Numbers == 0 || total.Stats.Orders["move"] == 0 || total.Stats.Orders["take back move"] == 0 {
		t.Errorf("a run in which nothing happens proves nothing: %v", total)
	}
}

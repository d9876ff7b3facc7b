package sim

import (
	"testing"
	"time"
)

// TestTheJournalOutlivesPowerCuts looks shortly at runs with the real journal, whose disks lose
// what was not synced.
func TestTheJournalOutlivesPowerCuts(t *testing.T) {
	runs := 6
	if testing.Short() {
		runs = 2
	}
	var total Report
	for seed := range uint64(runs) {
		o := OptionsOf(seed + 1)
		o.Torn, o.Length = true, 100*time.Second
		r := simulate(t, o)
		report(t, r)
		total.Add(r)
	}
	t.Logf("%v", total)
	if total.Stats.Faults["outage"] == 0 || total.Stats.Torn == 0 {
		t.Errorf("%d power cuts lost something of %d: want some", total.Stats.Torn, total.Stats.Faults["outage"])
	}
}

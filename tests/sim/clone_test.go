package sim

import (
	"testing"
	"time"
)

// TestACopyIsFoundOutAfterANodeHadASecondProcess has the second process of each node end before the copy
// begins: sessions that are alive must reach both.
func TestACopyIsFoundOutAfterANodeHadASecondProcess(t *testing.T) {
	for seed := range uint64(12) {
		o := OptionsOf(seed + 1)
		o.Clone, o.Care, o.Late, o.Length, o.Faults = true, false, false, 25*time.Second, nil
		for i := range o.Allocs {
			o.Faults = append(o.Faults, Fault{At: time.Duration(5+5*i) * time.Second, Verb: "twin", Host: allocName(i), For: 600 * time.Millisecond})
		}
		report(t, simulate(t, o))
	}
}

// TestOfTwoProcessesOfOneStoreOneIsFoundOut copies the disk of a store in the end of each run.
func TestOfTwoProcessesOfOneStoreOneIsFoundOut(t *testing.T) {
	runs := 30
	if testing.Short() {
		runs = 6
	}
	var total Report
	for seed := range uint64(runs) {
		o := OptionsOf(seed + 1)
		o.Clone, o.Care, o.Late, o.Length = true, false, false, 8*time.Second
		r := simulate(t, o)
		report(t, r)
		total.Add(r)
	}
	t.Logf("%v", total)
	if made, lack := total.Stats.Faults["clone"], total.Stats.Faults["clonelacks"]; made < runs/2 || lack == 0 {
		t.Errorf("%d of %d runs had a copy, and %d copies lacked what the store had promised: want most, and some", made, runs, lack)
	}
}

package sim

import (
	"testing"
	"time"
)

// TestSeveralThatBindNewStoresMakeOneCluster looks at many beginnings of runs, in which several bind
// stores at once that were made twice.
func TestSeveralThatBindNewStoresMakeOneCluster(t *testing.T) {
	runs := 100
	if testing.Short() {
		runs = 10
	}
	var total Report
	for seed := range uint64(runs) {
		o := OptionsOf(seed + 1)
		o.Unbound, o.Length = true, time.Second
		r := simulate(t, o)
		report(t, r)
		total.Add(r)
	}
	t.Logf("%v", total)
	if total.Stats.Orders["bind"] != runs || total.Stats.Faults["madetwice"] == 0 || total.Stats.Orders["bind to a second store"] == 0 {
		t.Errorf("%d of %d clusters were bound, %d stores were made twice, and %d of the second ones are members: want all, and some",
			total.Stats.Orders["bind"], runs, total.Stats.Faults["madetwice"], total.Stats.Orders["bind to a second store"])
	}
}

func TestStoresAreBoundInAShareOfTheRuns(t *testing.T) {
	unbound := 0
	for seed := range uint64(400) {
		if OptionsOf(seed).Unbound {
			unbound++
		}
		if OptionsOf(seed).On(EtcdEngine).Unbound {
			t.Errorf("seed %d binds the members of an etcd", seed)
		}
	}
	if unbound < 90 || unbound > 180 {
		t.Errorf("%d of 400 runs bind their stores, want about one in three", unbound)
	}
}

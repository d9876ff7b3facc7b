package storeadmin_test

import (
	"testing"

	"github.com/seqsvr/seqsvr/internal/base/version"
)

// A learner may have been made by an older build, or before the protocol was required.
func TestALearnerRequiresTheProtocolBeforeItCountsAsFilled(t *testing.T) {
	s := founders(t, 3)
	fresh := learner(t, "n")
	for _, one := range s[:2] { // W have it
		client, _ := at(t, one)
		if err := client.Require(within(t), "c1", 0, version.Sets, false, true); err != nil {
			t.Fatal(err)
		}
	}
	s[2].stop()
	care := open(t, s[:2]...)
	defer care.Close()
	steps, err := care.Replace(within(t), "c", fresh.addr, "")
	run(t, steps, err)
	if _, id := at(t, fresh); !id.Voting || id.Required != version.Sets {
		t.Errorf("the new store requires %d, want %d: %s", id.Required, version.Sets, id.State)
	}
	snap, err := open(t, s[:2]...).Snapshot(within(t))
	if err != nil || snap.Required != version.Sets {
		t.Errorf("a backup has %d, want %d: %v", snap.Required, version.Sets, err)
	}
}

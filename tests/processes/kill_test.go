package processes

import (
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/ops/msglog"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// smallSteps makes the stores write all the time, and sections be shared by many.
func smallSteps(cfg *localcluster.Config) { cfg.Sections, cfg.Step = 64, 20 }

// quarters cuts a log into four.
func quarters(log []msglog.Message) (parts [4][]msglog.Message) {
	for i := range parts {
		parts[i] = log[len(log)*i/4 : len(log)*(i+1)/4]
	}
	return parts
}

func TestKillingEverythingInTheMiddleOfAReplayRepeatsAndLowersNothing(t *testing.T) {
	log := bigLog(t)
	part := quarters(log)
	c := start(t, smallSteps)
	r := startReplay(t, c)
	r.feed(part[0])
	r.feed(part[1])
	quarter := uint64(len(part[0]))
	r.until("a quarter answered", func() bool { return taken(t, c) >= quarter })
	c.KillAll()
	r.feed(part[2]) // asked for while nothing runs
	r.feed(part[3])
	if err := c.StartAll(); err != nil {
		t.Fatal(err)
	}
	harness.Ready(t, c)
	got, answers := r.finish()
	_, skipped := check(t, log, answers)
	if got.Events != uint64(len(log)) || got.Duplicates != 0 || got.Regressions != 0 {
		t.Errorf("got %+v, want %d messages, no duplicate, no regression", got, len(log))
	}
	// A user that got a number before the kill and another after it skipped a gap. The exceptions are the
	// few users at the very end of their section's range.
	if got.Gaps == 0 || got.Skipped == 0 || skipped < got.Skipped {
		t.Errorf("got %d gaps of %d numbers, counted %d: want what was skipped to be told", got.Gaps, got.Skipped, skipped)
	}
}

func TestKillingEachStoreInTheMiddleOfAReplayChangesNothing(t *testing.T) {
	log := bigLog(t)
	part := quarters(log)
	c := start(t, smallSteps)
	stores := c.Processes(localcluster.RoleStore)
	r := startReplay(t, c)
	r.feed(part[0])
	fed := uint64(len(part[0]))
	for i, store := range stores {
		r.until("half of what is there answered", func() bool { return taken(t, c) >= fed-uint64(len(part[i])/2) })
		if err := store.Kill(); err != nil {
			t.Fatal(err)
		}
		r.feed(part[i+1])
		fed += uint64(len(part[i+1]))
		r.until("more answered without "+store.Name, func() bool { return taken(t, c) >= fed-uint64(len(part[i+1])/2) })
		if err := store.Start(); err != nil {
			t.Fatal(err)
		}
		harness.Ready(t, c)
	}
	got, answers := r.finish()
	last, skipped := check(t, log, answers)
	wantClean(t, log, got, last, skipped)
}

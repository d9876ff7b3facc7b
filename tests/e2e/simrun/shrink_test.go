package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/tests/sim"
)

// needs breaks a promise if all of its faults are in the schedule.
type needs struct {
	faults []string
	runs   int
}

func (n *needs) run(_ context.Context, job sim.Job, _ bool) (sim.Result, error) {
	n.runs++
	r := sim.Result{Seed: job.Seed, Faults: job.Faults}
	for _, f := range n.faults {
		if !slices.Contains(job.Faults, f) {
			return r, nil
		}
	}
	r.Violations = []sim.Violation{{Kind: "U"}}
	return r, nil
}

func TestAScheduleShrinksToWhatTheFailureNeeds(t *testing.T) {
	var all []string
	for c := 'a'; c <= 'z'; c++ {
		all = append(all, string(c))
	}
	n := &needs{faults: []string{"c", "q", "r"}}
	failing, err := n.run(t.Context(), sim.Job{Seed: 7, Faults: all}, false)
	if err != nil {
		t.Fatal(err)
	}
	got := shrink(t.Context(), n, failing, 0, time.Minute)
	if diff := cmp.Diff(n.faults, got.Faults); diff != "" {
		t.Errorf("shrunk schedule (-want +got)\n%s", diff)
	}
	if got.Seed != 7 || n.runs > 60 {
		t.Errorf("seed %d after %d runs, want seed 7 after at most 60", got.Seed, n.runs)
	}
}

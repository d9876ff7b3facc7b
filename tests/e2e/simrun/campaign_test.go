package main

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/tests/sim"
)

// fake breaks a promise at one seed, if one fault is in the schedule.
type fake struct {
	bad   uint64
	seeds map[uint64]int
}

func (f *fake) run(_ context.Context, job sim.Job, traced bool) (sim.Result, error) {
	f.seeds[job.Seed]++
	r := sim.Result{Seed: job.Seed, Engine: job.Engine, Virtual: 1e9, Faults: []string{"1s kill a1", "2s kill s1", "3s kill a2"}}
	if job.OwnFaults {
		r.Faults = job.Faults
	}
	if job.Seed == f.bad && strings.Contains(strings.Join(r.Faults, "\n"), "kill s1") {
		r.Violations = []sim.Violation{{Kind: "U", Text: "twice"}}
	}
	if traced {
		r.Trace = []string{"what happened"}
	}
	return r, nil
}

func TestAFailingSeedIsShrunkAndPrintedWithWhatRepeatsIt(t *testing.T) {
	f := &fake{bad: 102, seeds: map[uint64]int{}}
	var out strings.Builder
	c := &campaign{run: f, exact: func(context.Context) (runner, error) { return f, nil }, out: &out,
		kept: []sim.Kept{{Seed: 7}, {Seed: 8}}, engines: engines["store"], first: 100, virtual: 1e12, workers: 1}
	if err := c.work(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want %v", err, errBroken)
	}
	for _, want := range []string{"seed 102 on store breaks a promise", "U at 0.000000 s: twice", "what happened", "schedule, 1 of 3 faults:\n  2s kill s1\n", "-seed 102", "1 violations"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
	if f.seeds[7] != 1 || f.seeds[8] != 1 || f.seeds[100] != 1 || f.seeds[103] != 0 {
		t.Errorf("runs of each seed: %v, want the kept ones, 100 to 102, and none after the failure", f.seeds)
	}
}

func TestACampaignOfAllGoesOnAfterAFailure(t *testing.T) {
	f := &fake{bad: 3, seeds: map[uint64]int{}}
	var out strings.Builder
	c := &campaign{run: f, exact: func(context.Context) (runner, error) { return f, nil }, out: &out, engines: engines["both"], first: 1, virtual: 10e9, workers: 1, all: true}
	if err := c.work(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want %v", err, errBroken)
	}
	if c.total.Runs != 10 || c.total.Violations != 1 {
		t.Errorf("%d runs with %d violations, want 10 with 1", c.total.Runs, c.total.Violations)
	}
}

func TestACampaignEndsWhenEnoughIsSimulated(t *testing.T) {
	f := &fake{seeds: map[uint64]int{}}
	var out strings.Builder
	c := &campaign{run: f, out: &out, engines: engines["both"], first: 1, virtual: 10e9, workers: 1}
	if err := c.work(t.Context()); err != nil {
		t.Error(err)
	}
	if c.total.Runs != 10 || !strings.Contains(out.String(), "0 violations") {
		t.Errorf("%d runs, want 10:\n%s", c.total.Runs, &out)
	}
}

func TestARunThatHangsIsEndedAndSaysSo(t *testing.T) {
	p, err := begin(exec.Command("sleep", "60"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errHangs)
	defer cancel()
	if _, err := p.do(ctx, sim.Job{Seed: 7}, []byte("{}")); !errors.Is(err, errHangs) || !strings.Contains(err.Error(), "seed 7") {
		t.Errorf("got %v, want %v of seed 7", err, errHangs)
	}
}

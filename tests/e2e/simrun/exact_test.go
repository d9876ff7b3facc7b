package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/tests/sim"
)

// guest builds the simulator for WebAssembly, which also shows that all it needs still
// builds there.
func guest(t *testing.T) *machine {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles the simulator to WebAssembly")
	}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	file, err := build(t.Context(), root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMachine(t.Context(), file, filepath.Join(os.TempDir(), "seqsvr-simrun"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.close(t.Context()) })
	return m
}

func TestASeedGivesTheSameRunEventByEvent(t *testing.T) {
	m := guest(t)
	// The second one has operators, who restore a backup.
	for _, job := range []sim.Job{{Seed: 3, Length: 20 * time.Second}, {Seed: 27, Length: 15 * time.Second},
		{Seed: 4, Engine: sim.EtcdEngine, Length: 20 * time.Second}} {
		sameTwice(t, m, job)
	}
}

func sameTwice(t *testing.T, m *machine, job sim.Job) {
	t.Helper()
	run := func(job sim.Job, traced bool) sim.Result {
		t.Helper()
		r, err := m.run(t.Context(), job, traced)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range r.Violations {
			t.Error(v)
		}
		return r
	}
	want := run(job, true)
	if len(want.Trace) < 500 {
		t.Errorf("%d events, a run in which so little happens shows nothing", len(want.Trace))
	}
	if diff := cmp.Diff(want, run(job, true)); diff != "" {
		t.Errorf("two runs of seed %d differ (-first +second)\n%s", job.Seed, head(diff))
	}
	unseen := want
	unseen.Trace = nil
	if diff := cmp.Diff(unseen, run(job, false)); diff != "" {
		t.Errorf("a run that nobody watches is another one (-watched +not)\n%s", head(diff))
	}
}

func head(diff string) string { return diff[:min(len(diff), 4000)] }

package sim

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// simulate runs one seed in a bubble of virtual time.
func simulate(t *testing.T, o Options) Result {
	t.Helper()
	dir := t.TempDir()
	var r Result
	bubble.Test(t, func(*testing.T) { r = Run(o, dir) })
	return r
}

// TestGuest is what tests/e2e/simrun calls. SIM_JOB is one job as JSON, which is what an
// instance of WebAssembly gets; or - for the lines of standard input, one job each, so that
// a native process serves for many. Each gives one result as JSON on standard output.
func TestGuest(t *testing.T) {
	switch text := os.Getenv("SIM_JOB"); text {
	case "":
		t.Skip("SIM_JOB is not set: this is the inside of tests/e2e/simrun")
	case "-":
		jobs := bufio.NewScanner(os.Stdin)
		jobs.Buffer(nil, 1<<20)
		for n := 0; jobs.Scan() && !t.Failed(); n++ {
			t.Run(strconv.Itoa(n), func(t *testing.T) { serve(t, jobs.Text()) })
		}
		if err := jobs.Err(); err != nil {
			t.Fatal(err)
		}
	default:
		serve(t, text)
	}
}

// serve does one job.
func serve(t *testing.T, text string) {
	var job Job
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		t.Fatal(err)
	}
	o, err := job.Options()
	if err != nil {
		t.Fatal(err)
	}
	r := simulate(t, o)
	if job.Traced() {
		r.Trace = r.Events(1 << 20)
	}
	out, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nRESULT %s\n", out)
}

// report fails the test with all that is needed to work on a violation.
func report(t *testing.T, r Result) {
	t.Helper()
	if len(r.Violations) == 0 {
		return
	}
	for _, v := range r.Violations {
		t.Errorf("seed %d: %s", r.Seed, v)
	}
	t.Errorf("exact, with every event: cd tests/e2e && go run ./simrun -engine %s -seed %d -trace\nschedule:\n%s", r.Engine, r.Seed, strings.Join(r.Faults, "\n"))
}

func TestKeptSeedsBreakNoPromise(t *testing.T) {
	seeds, err := KeptSeeds("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range seeds {
		report(t, simulate(t, OptionsOf(kept.Seed).On(kept.Engine)))
	}
}

// TestRandomFaultsBreakNoPromise is a short look at a few seeds, the same ones each time;
// make sim is the long one.
func TestRandomFaultsBreakNoPromise(t *testing.T) {
	runs := 3
	if testing.Short() {
		runs = 1
	}
	var total Report
	for seed := range uint64(runs) {
		o := OptionsOf(seed + 1)
		o.Length = 100 * time.Second
		r := simulate(t, o)
		report(t, r)
		total.Add(r)
	}
	t.Logf("%v", total)
	if total.Stats.Numbers == 0 || total.Stats.Commits == 0 || len(total.Stats.Faults) == 0 {
		t.Errorf("a run in which nothing happens proves nothing: %v", total)
	}
}

// TestNodesThatFoldAllTheTimeBreakNoPromise runs nodes that have hardly any memory for the counters of
// UIDs. Counters that were idle for 10 s are folded.
func TestNodesThatFoldAllTheTimeBreakNoPromise(t *testing.T) {
	var total Report
	for seed := range uint64(2) {
		o := OptionsOf(seed + 100)
		o.Length, o.Scarce = 200*time.Second, true
		r := simulate(t, o)
		report(t, r)
		total.Add(r)
	}
	t.Logf("%v, %d blocks folded", total, total.Stats.Folded)
	if total.Stats.Folded == 0 || total.Stats.Handoffs == 0 || total.Stats.Takeovers == 0 {
		t.Errorf("%d blocks folded, %d hand-overs, %d takeovers: want some of each", total.Stats.Folded, total.Stats.Handoffs, total.Stats.Takeovers)
	}
}

// TestPreemptionsAtAnyTimeBreakNoPromise has nodes take others for silent in the middle of everything. In half
// of the runs clocks lie without bound: what strict and exact spaces promise rests on no clock.
func TestPreemptionsAtAnyTimeBreakNoPromise(t *testing.T) {
	for _, engine := range []Engine{StoreEngine, EtcdEngine} {
		var total Report
		for seed := range preemptedRuns {
			o := OptionsOf(seed + 40).On(engine)
			o.Length, o.Beyond, o.Think = 100*time.Second, seed%2 == 0, o.Think/4
			r := simulate(t, o)
			report(t, r)
			total.Add(r)
		}
		t.Logf("%v", total)
		if total.Stats.Preempted == 0 {
			t.Errorf("%s: no section was preempted", engine)
		}
	}
}

// preemptedRuns is the number of runs of TestPreemptionsAtAnyTimeBreakNoPromise on each engine.
const preemptedRuns = uint64(3)

func TestAFaultIsReadAsItIsWritten(t *testing.T) {
	for seed := range uint64(50) {
		for _, want := range Schedule(OptionsOf(seed)) {
			got, err := ParseFault(want.String())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", want, diff)
			}
		}
	}
	for _, bad := range []string{"", "1s kill", "x kill a1", "1s explode a1", "1s [commit kill a1", "1s kill a1 for long"} {
		if _, err := ParseFault(bad); err == nil {
			t.Errorf("%q is taken for a fault", bad)
		}
	}
}

var update = flag.Bool("update", false, "write the output of the scenarios into their files")

func TestScenariosEndAsTheyShould(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, file := range files {
		if filepath.Base(file) == "seeds.txt" {
			continue
		}
		played++
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { playFile(t, file) })
	}
	if played == 0 {
		t.Error("no scenarios in testdata")
	}
}

func playFile(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	commands, err := parseScript(string(text))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var got []string
	var violations []Violation
	bubble.Test(t, func(*testing.T) { got, violations = play(commands, dir) })
	for _, v := range violations {
		t.Error(v)
	}
	if *update {
		if err := os.WriteFile(file, []byte(golden(string(text), got)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for i, c := range commands {
		if diff := cmp.Diff(c.want, got[i]); diff != "" {
			t.Errorf("%s:%d: %s (-want +got)\n%s", file, c.line, c.text, diff)
		}
	}
}

// TestRegistersInEtcdBreakNoPromise is a short look at runs on the second engine.
func TestRegistersInEtcdBreakNoPromise(t *testing.T) {
	runs := 3
	if testing.Short() {
		runs = 1
	}
	var total Report
	for seed := range uint64(runs) {
		o := OptionsOf(seed + 2).On(EtcdEngine) // the first of them has takeovers by itself
		o.Length = 100 * time.Second
		r := simulate(t, o)
		report(t, r)
		total.Add(r)
	}
	t.Logf("%v", total)
	if total.Stats.Numbers == 0 || total.Stats.Commits == 0 || total.Stats.Takeovers == 0 || len(total.Stats.Faults) == 0 {
		t.Errorf("a run in which nothing happens proves nothing: %v", total)
	}
}

// TestAnEtcdThatIsPutBackGetsANewEra restores an etcd below a cluster that runs, and one whose
// processes are stopped.
func TestAnEtcdThatIsPutBackGetsANewEra(t *testing.T) {
	for arg := range 2 {
		o := OptionsOf(1).On(EtcdEngine)
		o.Length, o.Faults = 60*time.Second, []Fault{{At: 30 * time.Second, Verb: "rollback", Arg: float64(arg)}}
		r := simulate(t, o)
		report(t, r)
		if r.Stats.Orders["new era"] != 1 {
			t.Errorf("by %d: no new era: %v", arg, r)
		}
	}
}

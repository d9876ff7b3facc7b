package drills

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// bin holds the binaries of this test run.
var bin string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "drills-bin-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	bin = dir
	return m.Run()
}

// build makes the binaries once; tests that -short skips do not pay for it.
func build(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("drills start real clusters")
	}
	if _, err := os.Stat(filepath.Join(bin, "seqctl")); err == nil {
		return
	}
	cmd := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "../../cmd/...")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
}

// report is what -o json gives.
type report struct {
	Requests    int      `json:"requests"`
	Errors      int      `json:"errors"`
	Reasons     []string `json:"reasons"`
	MaxPauseMS  float64  `json:"max_pause_ms"`
	Duplicates  int      `json:"duplicates"`
	Regressions int      `json:"regressions"`
	Invalid     int      `json:"invalid"`
	Gaps        int      `json:"gaps"`
	LongestGap  int      `json:"longest_gap"`
	Account     *account `json:"account"`
	Examples    []string `json:"examples"`
	Timeline    []moment `json:"timeline"`
}

// account tells whose the gaps are.
type account struct {
	Answered uint64 `json:"answered"`
	Unheard  uint64 `json:"unheard"`
	Skipped  uint64 `json:"skipped"`
	Lapses   uint64 `json:"lapses"`
}

type moment struct {
	MS      float64 `json:"ms"`
	Event   string  `json:"event"`
	Subject string  `json:"subject"`
	Detail  string  `json:"detail"`
}

func (r report) has(event string) bool { return r.count(event) > 0 }

func (r report) count(event string) (n int) {
	for _, m := range r.Timeline {
		if m.Event == event {
			n++
		}
	}
	return n
}

// outcome is how a process ended.
type outcome struct {
	code           int
	stdout, stderr string
	pid            int
}

// patience is far more than any drill takes, on a machine with much else to do.
const patience = 4 * time.Minute

// seqctl runs the real program. temp becomes the folder of its temporary files.
func seqctl(t *testing.T, temp string, args ...string) outcome {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "seqctl"), args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), log.String(), cmd.Process.Pid}
}

// noNamespaces begins the text of an error where namespaces cannot be had.
const noNamespaces = "network namespaces are not to be had"

// run runs a drill on a cluster of its own and checks what holds for all of them.
func run(t *testing.T, name string, flags ...string) report {
	t.Helper()
	build(t)
	temp := t.TempDir()
	args := append([]string{"drill", name, "-o", "json", "--rate", "400", "--uids", "100", "--timeout", "60s"}, flags...)
	end := seqctl(t, temp, args...)
	if strings.Contains(end.stderr, noNamespaces) {
		t.Skip(strings.TrimSpace(end.stderr))
	}
	expected := ""
	if name == "kill-two-stores" { // what cannot be served is refused soon, and says why
		expected = seq.ErrNoQuorum.Error()
	}
	r := check(t, end, expected)
	nothingLeft(t, temp, end.pid)
	return r
}

// check reads the report of a drill that must have gone well. Callers may have seen errors
// with the expected text, empty for none.
func check(t *testing.T, end outcome, expected string) report {
	t.Helper()
	var r report
	if err := json.Unmarshal([]byte(end.stdout), &r); err != nil {
		t.Fatalf("exit %d: %s\nno report: %v", end.code, end.stderr, err)
	}
	t.Logf("%d requests, %d errors, longest pause %.0f ms, %d gaps, at most %d in a row", r.Requests, r.Errors, r.MaxPauseMS, r.Gaps, r.LongestGap)
	if end.code != 0 {
		t.Errorf("exit %d: %s", end.code, end.stderr)
	}
	if r.Duplicates != 0 || r.Regressions != 0 || r.Invalid != 0 {
		t.Errorf("%d duplicates, %d regressions, %d impossible answers: %s", r.Duplicates, r.Regressions, r.Invalid, strings.Join(r.Examples, "\n"))
	}
	others := slices.DeleteFunc(slices.Clone(r.Reasons), func(why string) bool { return expected != "" && strings.Contains(why, expected) })
	if r.Errors != 0 && (expected == "" || len(others) > 0) {
		t.Errorf("callers of the SDK saw %d errors: %s", r.Errors, strings.Join(r.Reasons, "\n"))
	}
	if r.Requests == 0 || !r.has("fault") {
		t.Errorf("nothing happened: %d requests, timeline %v", r.Requests, r.Timeline)
	}
	if !slices.IsSortedFunc(r.Timeline, func(a, b moment) int { return cmp.Compare(a.MS, b.MS) }) {
		t.Errorf("the timeline is not in its order: %v", r.Timeline)
	}
	return r
}

// nothingLeft fails for files and namespaces that a drill left behind.
func nothingLeft(t *testing.T, temp string, pid int) {
	t.Helper()
	left, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("left behind: %s", entry.Name())
	}
	for _, name := range namespaces(pid) {
		t.Errorf("left behind: network namespace %s", name)
	}
}

// wants fails for an event that the timeline does not have.
func (r report) wants(t *testing.T, events ...string) {
	t.Helper()
	for _, event := range events {
		if !r.has(event) {
			t.Errorf("no %q in the timeline: %v", event, r.Timeline)
		}
	}
}

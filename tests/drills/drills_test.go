package drills

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// report is what -o json gives.
type report struct {
	Requests    int                                   `json:"requests"`
	Errors      int                                   `json:"errors"`
	Reasons     []string                              `json:"reasons"`
	MaxPauseMS  float64                               `json:"max_pause_ms"`
	Before      float64                               `json:"answers_before"`
	After       float64                               `json:"answers_after"`
	Duplicates  int                                   `json:"duplicates"`
	Regressions int                                   `json:"regressions"`
	Invalid     int                                   `json:"invalid"`
	Gaps        int                                   `json:"gaps"`
	LongestGap  int                                   `json:"longest_gap"`
	Account     *account                              `json:"account"`
	Sets        []setFelt                             `json:"sets"`
	Moves       *struct{ Moves, Sections, Calls int } `json:"moves"`
	Exact       *exact                                `json:"exact"`
	Reading     *lab.Reading                          `json:"reading"`
	Examples    []string                              `json:"examples"`
	Timeline    []moment                              `json:"timeline"`
}

// exact is what holds of an exact space alone.
type exact struct {
	IDs        int    `json:"ids"`
	Repeated   int    `json:"repeated"`
	Replayed   int    `json:"replayed"`
	Unanswered int    `json:"unanswered"`
	LookedUp   int    `json:"looked_up"`
	Holes      uint64 `json:"holes"`
	TwoAnswers int    `json:"two_answers"`
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

// outcome describes the end of a process.
type outcome struct {
	harness.Ended
	pid int
}

// seqctl runs the real program. temp becomes the folder of its temporary files.
func seqctl(t *testing.T, temp string, args ...string) outcome {
	t.Helper()
	harness.Binaries(t) // before the time begins that the program has
	cmd := harness.Command(harness.Within(t), t, []string{"TMPDIR=" + temp}, "seqctl", args...)
	return outcome{harness.Run(t, cmd), cmd.Process.Pid}
}

// run runs a drill on a cluster of its own and checks what holds for all of them.
func run(t *testing.T, name string, flags ...string) report {
	t.Helper()
	scenario, err := lab.FindDrill(name)
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	args := append([]string{"drill", name, "-o", "json", "--rate", "400", "--uids", "100", "--timeout", "60s"}, flags...)
	end := seqctl(t, temp, args...)
	if strings.Contains(end.Stderr, lab.ErrNoNamespaces.Error()) {
		t.Skip(strings.TrimSpace(end.Stderr))
	}
	expected := ""
	if scenario.Expect.Refused || scenario.Expect.Others { // what cannot be served is refused soon, and says why
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
	if err := json.Unmarshal([]byte(end.Stdout), &r); err != nil {
		t.Fatalf("exit %d: %s\nno report: %v", end.Code, end.Stderr, err)
	}
	t.Logf("%d requests, %d errors, longest pause %.0f ms, %d gaps, at most %d in a row", r.Requests, r.Errors, r.MaxPauseMS, r.Gaps, r.LongestGap)
	if end.Code != 0 {
		t.Errorf("exit %d: %s", end.Code, end.Stderr)
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

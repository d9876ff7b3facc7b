package drill

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/seq"
)

// call is one of a UID that got a number, or failed for 0. Times are milliseconds.
func call(uid, number uint64, start, end int) history.Call {
	c := history.Call{Key: history.Key{UID: uid}, First: number, Last: number, Start: time.Duration(start) * time.Millisecond, End: time.Duration(end) * time.Millisecond}
	if number == 0 {
		c.Err = "direct: no quorum of stores: 1 of 3"
	}
	return c
}

func TestThePageShowsEveryKindOfCall(t *testing.T) {
	r := &lab.Result{Drill: "x", Known: func(uid uint64) bool { return uid == 1 }, Fault: 100 * time.Millisecond, Calls: []history.Call{
		call(1, 1, 10, 30), call(1, 2, 90, 101), call(2, 1, 100, 900), call(1, 5, 110, 800), call(1, 6, 300, 850), call(1, 0, 300, 820), call(1, 7, 860, 870),
	}, Timeline: []lab.Moment{{Event: "fault", Subject: "alloc-1", Detail: "SIGKILL"}, {MS: 700, Event: "first answer"}}}
	p := draw(r)
	for name, got := range map[string]struct {
		path string
		want int
	}{"known": {p.Known, 5}, "new": {p.New, 1}, "failed": {p.Fail, 1}} {
		if n := strings.Count(got.path, "M"); n != got.want {
			t.Errorf("%d points of %s calls, want %d", n, name, got.want)
		}
	}
	var text strings.Builder
	if err := page.Execute(&text, sheet{p}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "NaN") || strings.Contains(text.String(), "ZgotmplZ") {
		t.Error("something on the page is no number")
	}
}

func TestThePageOfADrillWithoutAnswersIsStillAPage(t *testing.T) {
	var text strings.Builder
	if err := page.Execute(&text, sheet{draw(&lab.Result{Drill: "x", Timeline: []lab.Moment{{Event: "fault"}}})}); err != nil {
		t.Fatal(err)
	}
}

func TestLabelsOfThePageDoNotOverlap(t *testing.T) {
	r := &lab.Result{Drill: "x", Known: func(uint64) bool { return true }, Calls: []history.Call{call(1, 1, 0, 1), call(1, 2, 0, 90_000)}}
	for i := range 120 { // crowded where it began, and now and then later
		at := float64(i * i)
		if i < 40 {
			at = float64(i)
		}
		r.Timeline = append(r.Timeline, lab.Moment{MS: at, Event: "table"})
	}
	p := draw(r)
	next := 1
	right := map[float64]float64{} // end of the last label, by row
	for _, m := range p.Marks {
		if m.Label == "" {
			continue
		}
		if end, ok := right[m.LY]; ok && m.LX < end {
			t.Errorf("label %q at %.1f begins before %.1f, the end of the one before", m.Label, m.LX, end)
		}
		right[m.LY] = m.LX + labelWidth(m.Label)
		if m.LY > latencyTop || m.LY < labelRow/2 {
			t.Errorf("label %q stands at %.1f, outside of its rows", m.Label, m.LY)
		}
		first, last, shared := strings.Cut(m.Label, "–")
		if !shared {
			last = first
		}
		from, _ := strconv.Atoi(first)
		to, _ := strconv.Atoi(last)
		if from != next || to < from {
			t.Errorf("label %q follows %d", m.Label, next-1)
		}
		next = to + 1
	}
	if next != 121 || len(right) < 2 {
		t.Errorf("labels of %d moments in %d rows, want 120 in several", next-1, len(right))
	}
	for i := 1; i < len(p.Ticks); i++ {
		if p.Ticks[i].At-p.Ticks[i-1].At < tickWidth {
			t.Errorf("times %s and %s touch", p.Ticks[i-1].Text, p.Ticks[i].Text)
		}
	}
}

func TestThePageBeginsWithTheVerdict(t *testing.T) {
	for want, r := range map[string]*lab.Result{
		"no error, no number repeated or fallen, longest pause 1.20s": {MaxPauseMS: 1200},
		"FAILED, 2 duplicates and 1 regressions":                      {Duplicates: 2, Regressions: 1},
		"3 errors, no number repeated or fallen":                      {Errors: 3},
		"FAILED, cluster is not healthy":                              {Drill: "failed"},
	} {
		path := filepath.Join(t.TempDir(), "page.html")
		var failed error
		if r.Drill == "failed" {
			failed = lab.ErrUnhealthy
		}
		r.Drill = "x"
		if err := writePage(path, told{r, failed}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(string(text), "<body>")
		if head, _, _ := strings.Cut(body, "</h1>"); !strings.Contains(head, want) {
			t.Errorf("the page begins with %q, want %q", head, want)
		}
	}
}

func TestThePageOfModesShowsEachBesideTheOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.html")
	of := func(mode seq.Mode, pause float64) *lab.Result {
		return &lab.Result{Drill: "x", Mode: mode, MaxPauseMS: pause, Known: func(uint64) bool { return true }, Calls: []history.Call{call(1, 1, 10, 30)}}
	}
	runs := []told{{of(seq.Ordered, 1000), nil}, {of(seq.Strict, 150), nil}, {of(seq.Exact, 140), lab.ErrUnhealthy}}
	if err := writePage(path, runs...); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "<svg"); n != 3 {
		t.Errorf("%d pictures, want 3", n)
	}
	for _, want := range []string{"drill x in 3 modes", "<td>strict</td><td class=\"n\">150.0 ms</td>", "exact: FAILED, cluster is not healthy"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

package drill

import (
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/history"
	"github.com/seqsvr/seqsvr/internal/lab"
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
	if err := page.Execute(&text, p); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "NaN") || strings.Contains(text.String(), "ZgotmplZ") {
		t.Error("something on the page is no number")
	}
}

func TestThePageOfADrillWithoutAnswersIsStillAPage(t *testing.T) {
	var text strings.Builder
	if err := page.Execute(&text, draw(&lab.Result{Drill: "x", Timeline: []lab.Moment{{Event: "fault"}}})); err != nil {
		t.Fatal(err)
	}
}

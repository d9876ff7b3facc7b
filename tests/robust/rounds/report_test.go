package rounds

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/snowflake"
)

func number(n uint64, start, end time.Duration) history.Call {
	return history.Call{Key: history.Key{UID: 1}, First: n, Last: n, Start: start, End: end}
}

// ledger is a key of the exact space, of which its log has number 1 by "a".
var ledger = history.Key{Space: exactSpace, UID: 1}

func exact(id string, n uint64, start, end time.Duration) history.Call {
	return history.Call{Key: ledger, ID: id, First: n, Last: n, Start: start, End: end}
}

// judged is the report of a history with one fault from 10 to 20 and one from 30 to 40.
func judged(calls []history.Call, runs []snowflake.Run, failure string) *Report {
	logs := map[history.Key]history.Log{ledger: {Last: 1, Found: map[string]history.Taken{"a": {First: 1, Last: 1}}}}
	r := newReport(Plan{Seed: 7}, DefaultConfig(), history.CheckExact(calls, logs), logs)
	book := idBook{runs: runs}
	r.IDs, r.DuplicateIDs = book.check()
	events := []*Event{
		{Kind: "kill-store", from: 10, to: 20},
		{Kind: "kill-alloc", from: 30, to: 40, Failure: failure},
		{Kind: "slow-fsync", Skipped: "without a disk"},
	}
	measure(events, calls)
	r.sum((&Site{}).scenarios(), events)
	return r
}

func TestARunThatBrokeAPromiseOrWentOtherwiseThanItShouldIsAnError(t *testing.T) {
	ids := []snowflake.Run{{First: 10, Last: 30, Stride: 10}, {First: 40, Last: 40, Stride: 1}}
	good := []history.Call{number(1, 1, 2), number(2, 3, 4), exact("a", 1, 3, 5)}
	rows := []struct {
		name    string
		calls   []history.Call
		runs    []snowflake.Run
		failure string
		want    error
	}{
		{"all is well", good, ids, "", nil},
		{"a number twice", append(good, number(2, 5, 6)), ids, "", ErrViolated},
		{"a smaller number later", []history.Call{number(5, 1, 2), number(4, 3, 4)}, ids, "", ErrViolated},
		{"a snowflake ID twice", good, append(ids, snowflake.Run{First: 20, Last: 20, Stride: 1}), "", ErrViolated},
		{"another number for a request that was repeated", append(good, exact("a", 2, 3, 4)), ids, "", ErrViolated},
		{"a request that is not in its log", append(good, exact("b", 2, 3, 4)), ids, "", ErrViolated},
		{"nobody gave an id", good[:2], ids, "", lab.ErrUnexpected},
		{"a cluster that stayed down", good, ids, "did not recover", lab.ErrUnexpected},
		{"nobody got anything", nil, ids, "", lab.ErrUnexpected},
		{"nobody got an ID", good, nil, "", lab.ErrUnexpected},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := judged(row.calls, row.runs, row.failure)
			if err := r.Err(); row.want == nil && err != nil || !errors.Is(err, row.want) {
				t.Errorf("got %v, want %v", err, row.want)
			}
			var text bytes.Buffer
			if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "seed 7") || !strings.Contains(text.String(), "skipped: without a disk") {
				t.Errorf("%v: %s", err, text.String())
			}
		})
	}
}

func TestACallCountsForTheFirstRoundThatItTouches(t *testing.T) {
	failed := history.Call{Key: history.Key{UID: 1}, Start: 32 * time.Microsecond, End: 39 * time.Microsecond, Err: "lost"}
	calls := []history.Call{
		number(1, 5*time.Microsecond, 38*time.Microsecond),  // waits through both rounds: the first one's
		number(2, 31*time.Microsecond, 35*time.Microsecond), // the second one's
		number(3, 50*time.Microsecond, 90*time.Microsecond), // after both
		failed,
	}
	first := &Event{Kind: "a", from: 10 * time.Microsecond, to: 20 * time.Microsecond}
	second := &Event{Kind: "b", from: 30 * time.Microsecond, to: 40 * time.Microsecond}
	measure([]*Event{first, second}, calls)
	if first.Longest != 0.033 || first.Errors != 0 || first.Silence != 0.01 {
		t.Errorf("first round: %+v", first)
	}
	if second.Longest != 0.004 || second.Errors != 1 || second.Silence != 0.005 {
		t.Errorf("second round: %+v", second)
	}
}

func TestEveryScenarioHasANameOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, sc := range (&Site{}).scenarios() {
		if sc.Name == "" || seen[sc.Name] || sc.Run == nil {
			t.Errorf("%q: twice, or without a name or an act", sc.Name)
		}
		seen[sc.Name] = true
	}
}

package rounds

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Report is what a run came to. Its JSON is the file that --json writes.
type Report struct {
	Seed    uint64  `json:"seed"`
	Stores  int     `json:"stores"`
	Allocs  int     `json:"allocs"` // of each Set
	Sets    int     `json:"sets"`   // zero for one cluster, of which more is asked
	Routers int     `json:"routers"`
	LeaseMS float64 `json:"lease_ms"`
	Network bool    `json:"network_namespaces"`
	Disks   bool    `json:"forgetful_disks"`
	Rate    int     `json:"rate"` // calls a second, while the cluster keeps up
	Seconds float64 `json:"seconds"`

	Faults int              `json:"faults"`
	Calls  map[string]int64 `json:"calls"`  // by kind
	Errors map[string]int   `json:"errors"` // by code

	Requests     int        `json:"requests"` // in the history of sequences and counters
	Failed       int        `json:"failed"`   // of those
	Keys         int        `json:"keys"`
	Numbers      uint64     `json:"numbers"` // checked
	Gaps         uint64     `json:"gaps"`
	LongestGap   uint64     `json:"longest_gap"`
	Duplicates   uint64     `json:"duplicates"`
	Regressions  int        `json:"regressions"`
	Invalid      int        `json:"invalid"`
	Exact        *lab.Exact `json:"exact"`         // of the exact space
	IDs          int        `json:"snowflake_ids"` // checked
	DuplicateIDs int        `json:"duplicate_snowflake_ids"`
	Failures     []string   `json:"failures"` // rounds that did not go as they should
	Examples     []string   `json:"examples"` // of broken promises

	Kinds  []KindRow `json:"kinds"`
	Events []*Event  `json:"events"`
	Logs   []string  `json:"logs,omitempty"` // ends of the processes' logs, with failures
}

// KindRow sums up all rounds with a kind of fault. Those that had a second kind beside it
// count for the faults and the failures, and not for the pauses: whose were they?
type KindRow struct {
	Kind      string  `json:"kind"`
	Faults    int     `json:"faults"`
	Alone     int     `json:"alone"`       // of those
	Longest   float64 `json:"longest_ms"`  // longest call
	Silence   float64 `json:"silence_ms"`  // longest time without an answer to anybody
	Recovered float64 `json:"recovered_s"` // longest recovery, after it was healed
	Errors    int     `json:"errors"`      // calls that failed
	Failures  int     `json:"failures"`    // rounds that did not go as they should
	Skipped   string  `json:"skipped,omitempty"`
}

func newReport(plan Plan, cfg Config, checked history.Report, logs map[history.Key]history.Log) *Report {
	r := &Report{
		Seed: plan.Seed, Stores: cfg.Stores, Allocs: cfg.Allocs, Sets: cfg.Sets, Routers: cfg.Routers, LeaseMS: ms(cfg.Lease),
		Network: cfg.Network != nil, Disks: cfg.ForgetFS != "", Rate: plan.Rate,
		Requests: checked.Requests, Failed: checked.Errors, Keys: checked.Keys, Numbers: checked.Numbers,
		Gaps: checked.Gaps, LongestGap: checked.LongestGap,
		Duplicates: checked.Duplicates, Regressions: checked.Regressions, Invalid: checked.Invalid,
		Exact: lab.ExactOf(checked, logs), Failures: []string{}, Examples: []string{},
	}
	for _, v := range checked.Violations {
		r.Examples = append(r.Examples, v.String())
	}
	return r
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// check counts the IDs and those that were handed out before. The duplicates count once
// each, for all times after the first.
func (b *idBook) check() (ids, duplicates int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []snowflake.ID
	for _, run := range b.runs {
		for id := run.First; ; id += run.Stride {
			all = append(all, id)
			if id == run.Last {
				break
			}
		}
	}
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			duplicates++
		}
	}
	return len(all), duplicates
}

// measure finds what callers felt of each round. A call belongs to the first round that
// it touches, which is the round that was under way when it began, or that began while it
// waited: what a fault leaves behind is not put down to the next one.
func measure(events []*Event, calls []history.Call) {
	slices.SortFunc(calls, func(a, b history.Call) int { return cmp.Compare(a.End, b.End) })
	before, from := time.Duration(0), time.Duration(0) // the end of the round before, and the begin of this one
	var ended time.Duration
	for _, e := range events {
		if e.Skipped != "" {
			continue
		}
		if e.from != from { // faults of one round begin at one moment
			before, from = ended, e.from
		}
		ended = e.to
		first, _ := slices.BinarySearchFunc(calls, e.from, func(c history.Call, at time.Duration) int { return cmp.Compare(c.End, at) })
		e.feel(calls[first:], before)
	}
}

// feel takes the calls that ended after the event began, by their ends.
func (e *Event) feel(calls []history.Call, before time.Duration) {
	answered := e.from
	for _, c := range calls {
		if c.End > e.to+2*callTimeout {
			break
		}
		if c.Err == "" && answered < e.to {
			e.Silence = max(e.Silence, ms(min(c.End, e.to)-answered))
			answered = c.End
		}
		switch {
		case c.Start < before || c.Start > e.to:
		case c.Err != "":
			e.Errors++
		default:
			e.Longest = max(e.Longest, ms(c.End-c.Start))
		}
	}
	if answered < e.to {
		e.Silence = max(e.Silence, ms(e.to-answered))
	}
}

// sum sums the events up.
func (r *Report) sum(scenarios []lab.Scenario, events []*Event) {
	rows := map[string]*KindRow{}
	for _, e := range events {
		row := rows[e.Kind]
		if row == nil {
			row = &KindRow{Kind: e.Kind, Skipped: e.Skipped}
			rows[e.Kind] = row
		}
		r.Events = append(r.Events, e)
		if e.Skipped != "" {
			continue
		}
		r.Faults++
		row.Faults++
		if e.Beside == "" {
			row.Alone++
			row.Longest, row.Silence = max(row.Longest, e.Longest), max(row.Silence, e.Silence)
			row.Recovered = max(row.Recovered, e.Recovered)
			row.Errors += e.Errors
		}
		if e.Failure != "" {
			row.Failures++
			r.Failures = append(r.Failures, fmt.Sprintf("at %.1f s, %s: %s", e.At, e.Kind, e.Failure))
		}
	}
	for _, sc := range scenarios {
		if row := rows[sc.Name]; row != nil {
			r.Kinds = append(r.Kinds, *row)
		}
	}
}

// Err is nil if every promise was kept and every round went as it should: otherwise
// ErrViolated, lab.ErrNotRecovered or lab.ErrUnexpected, those that apply, with examples.
func (r *Report) Err() error {
	var errs []error
	if x := r.Exact; r.Duplicates > 0 || r.Regressions > 0 || r.Invalid > 0 || r.DuplicateIDs > 0 || x.Holes > 0 || x.Twice > 0 {
		errs = append(errs, fmt.Errorf("%w: %d duplicates, %d regressions, %d impossible answers, %d duplicate snowflake IDs, "+
			"%d holes (X1), %d requests with two answers (X2); seed %d\n%s", ErrViolated,
			r.Duplicates, r.Regressions, r.Invalid, r.DuplicateIDs, x.Holes, x.Twice, r.Seed, strings.Join(r.Examples, "\n")))
	}
	if len(r.Failures) > 0 {
		errs = append(errs, fmt.Errorf("%w: %d rounds; seed %d\n%s", lab.ErrUnexpected, len(r.Failures), r.Seed, strings.Join(r.Failures, "\n")))
	}
	if r.Numbers == 0 || r.IDs == 0 || r.Exact.IDs == 0 && r.Sets == 0 {
		errs = append(errs, fmt.Errorf("%w: %d numbers, %d snowflake IDs, %d exact requests: the run shows nothing", lab.ErrUnexpected, r.Numbers, r.IDs, r.Exact.IDs))
	}
	return errors.Join(errs...)
}

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	place := "on loopback"
	if r.Network {
		place = "in network namespaces"
	}
	if r.Sets > 0 {
		place = fmt.Sprintf("%s, %d such Sets", place, r.Sets)
	}
	fmt.Fprintf(w, "%d stores, %d allocs, %d routers %s, lease %.0f ms, seed %d, %.0f s, %d faults, up to %d calls/s\n\n",
		r.Stores, r.Allocs, r.Routers, place, r.LeaseMS, r.Seed, r.Seconds, r.Faults, r.Rate)
	t := ui.NewTable("fault", "times", "alone", "longest call", "longest silence", "recovered in", "errors", "verdict")
	for _, k := range r.Kinds {
		if k.Skipped != "" {
			t.Row(k.Kind, 0, 0, "", "", "", "", ui.Cell{Text: "skipped: " + k.Skipped, Color: ui.Yellow})
			continue
		}
		verdict := ui.Cell{Text: "pass", Color: ui.Green}
		if k.Failures > 0 {
			verdict = ui.Cell{Text: fmt.Sprintf("%d FAILED", k.Failures), Color: ui.Red}
		}
		t.Row(k.Kind, k.Faults, k.Alone, fmt.Sprintf("%.0f ms", k.Longest), fmt.Sprintf("%.0f ms", k.Silence), fmt.Sprintf("%.1f s", k.Recovered), k.Errors, verdict)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, kind := range slices.Sorted(maps.Keys(r.Calls)) {
		fmt.Fprintf(w, "%10d calls  %s\n", r.Calls[kind], kind)
	}
	for _, code := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(w, "%10d errors %s\n", r.Errors[code], code)
	}
	fmt.Fprintf(w, "\n%d numbers of %d keys and %d snowflake IDs checked: %d duplicates, %d regressions, %d impossible answers, %d duplicate IDs; %d numbers skipped, at most %d in a row\n",
		r.Numbers, r.Keys, r.IDs, r.Duplicates, r.Regressions, r.Invalid, r.DuplicateIDs, r.Gaps, r.LongestGap)
	fmt.Fprintf(w, "%d requests with ids, %d of them repeated, %d answers replayed, %d looked up: %d holes (X1), %d requests with two answers (X2), %d without one\n",
		r.Exact.IDs, r.Exact.Repeated, r.Exact.Replayed, r.Exact.LookedUp, r.Exact.Holes, r.Exact.Twice, r.Exact.Unanswered)
	for _, text := range r.Logs {
		fmt.Fprintln(w, text)
	}
	return nil
}

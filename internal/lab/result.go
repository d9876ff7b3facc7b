package lab

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/seq"
)

// Result is what a drill came to. The JSON names are fixed.
type Result struct {
	Drill       string   `json:"drill"`
	Engine      string   `json:"engine"` // what keeps the registers: store, etcd
	LeaseMS     float64  `json:"lease_ms"`
	Stores      int      `json:"stores"`
	Allocs      int      `json:"allocs"`
	Routers     int      `json:"routers"`
	Supervise   bool     `json:"supervise"`
	Rate        int      `json:"rate"`            // calls a second
	Space       string   `json:"space,omitempty"` // if empty, the default space
	Mode        seq.Mode `json:"mode"`            // of the space
	Seconds     float64  `json:"seconds"`
	Requests    int      `json:"requests"`
	UIDs        int      `json:"uids"` // that got a number
	Errors      int      `json:"errors"`
	Reasons     []string `json:"reasons"` // of the errors, the most frequent first
	MaxPauseMS  float64  `json:"max_pause_ms"`
	TargetMS    float64  `json:"target_ms"`      // for the longest pause, on an idle machine; zero without a target
	SteadyMS    float64  `json:"max_before_ms"`  // the longest call before the fault
	Before      float64  `json:"answers_before"` // a second, before the fault
	After       float64  `json:"answers_after"`  // a second, once all was served again
	Duplicates  uint64   `json:"duplicates"`
	Regressions int      `json:"regressions"`
	Invalid     int      `json:"invalid"`
	Gaps        uint64   `json:"gaps"`        // numbers that no caller got
	LongestGap  uint64   `json:"longest_gap"` // of those, in a row
	Account     *Account `json:"account"`     // of the gaps; null where it cannot be made
	Exact       *Exact   `json:"exact,omitempty"`
	Reading     *Reading `json:"reading,omitempty"` // in a space with tickets

	Sets  []SetImpact `json:"sets,omitempty"`  // of a drill that kills one
	Moves *MovesFelt  `json:"moves,omitempty"` // of a drill that moves sections between them

	Wanted   string   `json:"wanted"`   // beside neither duplicates nor regressions
	Examples []string `json:"examples"` // of broken promises
	Timeline []Moment `json:"timeline"`

	Calls []history.Call    `json:"-"`
	Known func(uint64) bool `json:"-"` // the UIDs that were called again and again
	Fault time.Duration     `json:"-"` // when the first one began, on the clock of the calls
}

// Exact is what holds of a space of mode=exact alone.
type Exact struct {
	IDs        int    `json:"ids"`
	Repeated   int    `json:"repeated"`   // requests that were sent more than once
	Replayed   int    `json:"replayed"`   // answers that said so
	Unanswered int    `json:"unanswered"` // to the end
	LookedUp   int    `json:"looked_up"`
	Holes      uint64 `json:"holes"`       // X1
	Twice      int    `json:"two_answers"` // X2
}

// Kept says what keeps the registers, for people.
func (r *Result) Kept() string {
	switch {
	case r.Engine != onEtcd:
		return fmt.Sprintf("%d stores", r.Stores)
	case r.Stores == 0:
		return "etcd of others"
	}
	return fmt.Sprintf("%d members of etcd", r.Stores)
}

// ExactOf returns the Exact of a history that was checked with logs.
func ExactOf(checked history.Report, logs map[history.Key]history.Log) *Exact {
	e := &Exact{IDs: checked.IDs, Repeated: checked.Repeated, Replayed: checked.Replayed, Unanswered: checked.Unanswered,
		Holes: checked.Holes, Twice: checked.Twice}
	for _, log := range logs {
		e.LookedUp += len(log.Found)
	}
	return e
}

const onEtcd = "etcd" // of Result.Engine

// engine is what keeps the registers.
func (c *Cluster) engine() string {
	if c.OnEtcd() {
		return onEtcd
	}
	return string(store)
}

// measure makes the result of the whole history.
func (d *drill) measure(sc Scenario) *Result {
	calls := d.load.History.Calls()
	checked := history.Check(calls)
	if d.logs != nil {
		checked = history.CheckExact(calls, d.logs)
	}
	fault := d.timeline.began()
	r := &Result{
		Drill: sc.Name, Engine: d.engine(), LeaseMS: ms(d.lease), Supervise: d.supervise, Rate: d.load.cfg.Rate,
		Stores: len(d.Role(store)), Allocs: len(d.Role(alloc)), Routers: len(d.Role(router)),
		Requests: checked.Requests, UIDs: checked.Keys, Errors: checked.Errors, Reasons: reasons(calls),
		Duplicates: checked.Duplicates, Regressions: checked.Regressions, Invalid: checked.Invalid,
		Gaps: checked.Gaps, LongestGap: checked.LongestGap, Examples: []string{}, Wanted: sc.Expect.String(),
		Calls: calls, Known: d.load.knows(), Fault: fault,
	}
	if r.Space, r.Mode = d.Load.Space, d.mode; d.onces != nil {
		r.Exact = ExactOf(checked, d.logs)
	}
	r.TargetMS = ms(sc.Expect.target(d.lease, r.Supervise))
	for _, v := range checked.Violations {
		r.Examples = append(r.Examples, v.String())
	}
	if d.Own != nil { // the first number ever of a UID is 1: what is below the first seen is a gap too
		r.Gaps += checked.Below
		r.LongestGap = max(r.LongestGap, longestBelow(calls))
	}
	var first, last, pause, steady time.Duration
	for i, c := range calls {
		if i == 0 || c.Start < first {
			first = c.Start
		}
		last = max(last, c.End)
		if c.End >= fault {
			pause = max(pause, c.End-c.Start)
		} else {
			steady = max(steady, c.End-c.Start)
		}
	}
	r.MaxPauseMS, r.SteadyMS, r.Seconds = ms(pause), ms(steady), float64((last-first).Milliseconds())/1000
	r.Before, r.After = perSecond(calls, first, fault), perSecond(calls, d.served[0], d.served[1])
	for i, f := range d.faults {
		end := last
		if i+1 < len(d.faults) {
			end = d.faults[i+1].from
		}
		if f.uids != nil {
			d.answers(calls, f, end)
		}
	}
	switch {
	case sc.Expect.Others:
		r.Sets, r.MaxPauseMS = d.felt(calls, fault), 0
		for _, row := range r.Sets {
			if !row.Dead {
				r.MaxPauseMS = max(r.MaxPauseMS, row.MaxPauseMS)
			}
		}
	case sc.Sets > 0:
		r.Moves = d.moving(calls)
	}
	r.Timeline = d.timeline.list()
	return r
}

// broken is ErrBroken if a promise was.
func (r *Result) broken() error {
	var err error
	if r.Duplicates > 0 || r.Regressions > 0 || r.Invalid > 0 {
		err = fmt.Errorf("%w: %d duplicates, %d regressions, %d impossible answers", ErrBroken, r.Duplicates, r.Regressions, r.Invalid)
	}
	return errors.Join(err, r.Exact.broken(), r.Reading.broken())
}

func (e *Exact) broken() error {
	if e == nil || e.Holes == 0 && e.Twice == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d holes (X1), %d requests with two answers (X2)", ErrBroken, e.Holes, e.Twice)
}

// answers puts into the timeline when UIDs of a fault were answered again: at the end
// of the longest silence, which begins with the fault at the earliest.
func (d *drill) answers(calls []history.Call, f fault, end time.Duration) {
	touched := slices.DeleteFunc(slices.Clone(calls), func(c history.Call) bool {
		return c.Err != "" || c.End < f.from || c.End > end || !f.uids(seq.UID(c.UID))
	})
	if len(touched) == 0 {
		return
	}
	slices.SortFunc(touched, func(a, b history.Call) int { return int(a.End - b.End) })
	before, silence, answer := f.from, time.Duration(-1), touched[0]
	for _, c := range touched {
		if c.End-before > silence {
			silence, answer = c.End-before, c
		}
		before = c.End
	}
	d.timeline.add(answer.End, eventAnswer, "", "after %s without one for these UIDs", ui.Duration(silence))
	waited := answer
	for _, c := range touched { // those that waited through the silence
		if c.Start <= answer.End && c.End >= answer.End && c.End > waited.End {
			waited = c
		}
	}
	d.timeline.add(waited.End, eventLast, "", "answered after %s", ui.Duration(waited.End-waited.Start))
}

func longestBelow(calls []history.Call) (longest uint64) {
	least := map[history.Key]uint64{}
	for _, c := range calls {
		if at, ok := least[c.Key]; c.Err == "" && (!ok || c.First < at) {
			least[c.Key] = c.First
		}
	}
	for _, first := range least {
		longest = max(longest, first-1)
	}
	return longest
}

func ms(d time.Duration) float64 { return float64(d.Round(time.Microsecond).Microseconds()) / 1000 }

var digits = regexp.MustCompile(`[0-9]+`)

// reasons counts the errors, numbers in them left out.
func reasons(calls []history.Call) []string {
	count := map[string]int{}
	for _, c := range calls {
		if c.Err != "" {
			count[digits.ReplaceAllString(c.Err, "N")]++
		}
	}
	kinds := make([]string, 0, len(count))
	for kind := range count {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
	out := []string{}
	for _, kind := range kinds[:min(len(kinds), 10)] {
		out = append(out, fmt.Sprintf("%d times %s", count[kind], kind))
	}
	return out
}

package drill

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/history"
	"github.com/seqsvr/seqsvr/internal/localcluster"
	"github.com/seqsvr/seqsvr/internal/ui"
	"github.com/seqsvr/seqsvr/seq"
)

// report is what a drill prints.
type report struct {
	Drill       string   `json:"drill"`
	LeaseMS     float64  `json:"lease_ms"`
	Stores      int      `json:"stores"`
	Allocs      int      `json:"allocs"`
	Routers     int      `json:"routers"`
	Supervise   bool     `json:"supervise"`
	Rate        int      `json:"rate"` // calls a second
	Seconds     float64  `json:"seconds"`
	Requests    int      `json:"requests"`
	UIDs        int      `json:"uids"` // that got a number
	Errors      int      `json:"errors"`
	Reasons     []string `json:"reasons"` // of the errors, the most frequent first
	MaxPauseMS  float64  `json:"max_pause_ms"`
	SteadyMS    float64  `json:"max_before_ms"` // the longest call before the fault
	Duplicates  uint64   `json:"duplicates"`
	Regressions int      `json:"regressions"`
	Invalid     int      `json:"invalid"`
	Gaps        uint64   `json:"gaps"`        // numbers that nobody got
	LongestGap  uint64   `json:"longest_gap"` // of those, in a row
	Account     *account `json:"account"`     // of the gaps; null where it cannot be made
	Examples    []string `json:"examples"`    // of broken promises
	Timeline    []moment `json:"timeline"`
}

// measure makes the report of the whole history.
func (s *scene) measure(d drill, o *options) *report {
	calls := s.load.history.Calls()
	checked := history.Check(calls)
	fault := s.timeline.began()
	r := &report{
		Drill: d.name, LeaseMS: ms(s.lease), Supervise: o.Supervise && s.fresh, Rate: s.load.cfg.Rate,
		Stores: len(s.role(localcluster.RoleStore)), Allocs: len(s.role(localcluster.RoleAlloc)), Routers: len(s.role(localcluster.RoleRouter)),
		Requests: checked.Requests, UIDs: checked.Keys, Errors: checked.Errors, Reasons: reasons(calls),
		Duplicates: checked.Duplicates, Regressions: checked.Regressions, Invalid: checked.Invalid,
		Gaps: checked.Gaps, LongestGap: checked.LongestGap, Examples: []string{},
	}
	for _, v := range checked.Violations {
		r.Examples = append(r.Examples, v.String())
	}
	if s.fresh { // the first number ever of a UID is 1: what is below the first seen is a gap too
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
	for i, f := range s.faults {
		end := last
		if i+1 < len(s.faults) {
			end = s.faults[i+1].from
		}
		if f.uids != nil {
			s.answers(calls, f, end)
		}
	}
	r.Timeline = s.timeline.list()
	return r
}

// answers puts into the timeline when UIDs of a fault were answered again: at the end
// of the longest silence, which begins with the fault at the earliest.
func (s *scene) answers(calls []history.Call, f fault, end time.Duration) {
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
	s.timeline.add(answer.End, eventAnswer, "", "after %s without one for these UIDs", ui.Duration(silence))
	waited := answer
	for _, c := range touched { // those that waited through the silence
		if c.Start <= answer.End && c.End >= answer.End && c.End > waited.End {
			waited = c
		}
	}
	s.timeline.add(waited.End, eventLast, "", "answered after %s", ui.Duration(waited.End-waited.Start))
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

// table writes the timeline to w and returns the verdict.
func (r *report) table(w io.Writer) *ui.Table {
	fmt.Fprintf(w, "%s   %d stores, %d allocs, %d routers, lease %s, %s calls/s for %.1f s\n\n", strings.ToUpper(r.Drill),
		r.Stores, r.Allocs, r.Routers, ui.Duration(time.Duration(r.LeaseMS*float64(time.Millisecond))), ui.Int(int64(r.Rate)), r.Seconds)
	t := ui.NewTable("ms", "event", "node", "detail")
	for _, m := range r.Timeline {
		t.Row(fmt.Sprintf("%.1f", m.MS), m.Event, m.Subject, m.Detail)
	}
	_ = t.Write(w) // a writer that fails fails with the verdict again
	fmt.Fprintln(w)
	for _, text := range append(r.Reasons, r.Examples...) {
		fmt.Fprintf(w, "  - %s\n", text)
	}
	if a := r.Account; a != nil {
		fmt.Fprintf(w, "  - %s numbers answered, %s handed out to a call that did not hear of it in time and took another, %s skipped by the cluster, %d lapses of leases\n",
			ui.Uint(a.Answered), ui.Uint(a.Unheard), ui.Uint(a.Skipped), a.Lapses)
	}
	return ui.NewTable("requests", "errors", "longest pause", "before", "duplicates", "regressions", "gaps", "longest gap").
		Row(r.Requests, r.Errors, time.Duration(r.MaxPauseMS*float64(time.Millisecond)), time.Duration(r.SteadyMS*float64(time.Millisecond)),
			bad(r.Duplicates), bad(uint64(r.Regressions)), r.Gaps, r.LongestGap)
}

// bad is a number that should be 0.
func bad(n uint64) ui.Cell {
	if n == 0 {
		return ui.Cell{Text: "0", Color: ui.Green}
	}
	return ui.Cell{Text: ui.Uint(n), Color: ui.Red}
}

package drill

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/lab"
)

// table writes the timeline to w and returns the verdict.
func table(r *lab.Result, w io.Writer) *ui.Table {
	fmt.Fprintf(w, "%s   %s, %d allocs, %d routers, lease %s, %s calls/s for %.1f s\n\n", strings.ToUpper(r.Drill),
		r.Kept(), r.Allocs, r.Routers, ui.Duration(time.Duration(r.LeaseMS*float64(time.Millisecond))), ui.Int(int64(r.Rate)), r.Seconds)
	t := ui.NewTable("ms", "event", "node", "detail")
	for _, m := range r.Timeline {
		t.Row(fmt.Sprintf("%.1f", m.MS), m.Event, m.Subject, m.Detail)
	}
	_ = t.Write(w) // a writer that fails fails with the verdict again
	fmt.Fprintln(w)
	fmt.Fprintf(w, "  - %.0f answers a second before the fault, %.0f once all was served again\n", r.Before, r.After)
	for _, text := range append(r.Reasons, r.Examples...) {
		fmt.Fprintf(w, "  - %s\n", text)
	}
	if a := r.Account; a != nil {
		fmt.Fprintf(w, "  - %s numbers answered, %s handed out to a call that did not hear of it in time and took another, %s skipped by the cluster, %d lapses of leases\n",
			ui.Uint(a.Answered), ui.Uint(a.Unheard), ui.Uint(a.Skipped), a.Lapses)
	}
	if e := r.Exact; e != nil {
		fmt.Fprintf(w, "  - space %s, exact: %s UIDs with a number, %s ids, %s of them repeated, %s answers replayed, %s looked up: %s holes (X1), %s requests with two answers (X2), %s without one\n",
			r.Space, ui.Int(int64(r.UIDs)), ui.Int(int64(e.IDs)), ui.Int(int64(e.Repeated)), ui.Int(int64(e.Replayed)), ui.Int(int64(e.LookedUp)),
			ui.Uint(e.Holes), ui.Int(int64(e.Twice)), ui.Int(int64(e.Unanswered)))
	}
	if e := r.Reading; e != nil {
		fmt.Fprintf(w, "  - space %s, tickets: %s opened, %s committed, %s by writers that died, %s too late to commit; %s marks read, %s not known yet, %s updates of the watch: "+
			"%d tickets passed by a mark and %d not fenced (R1), %d marks fell (R2), %d UIDs held (R3), %d missed by the watch (R4); at the last numbers %s after the load\n",
			r.Space, ui.Int(int64(e.Tickets)), ui.Int(int64(e.Committed)), ui.Int(int64(e.Dead)), ui.Int(int64(e.Late)), ui.Int(int64(e.Marks)), ui.Int(int64(e.Unknown)),
			ui.Int(int64(e.Updates)), e.Lost, e.Unfenced, e.Fell, e.Held, e.Missed, pause(e.SettledMS))
	}
	for _, s := range r.Sets {
		fmt.Fprintf(w, "  - %s\n", setText(s))
	}
	if m := r.Moves; m != nil {
		fmt.Fprintf(w, "  - %d moves of %s sections in all; %s calls while theirs moved: p50 %s, p99 %s, p100 %s\n", m.Moves, ui.Int(int64(m.Sections)),
			ui.Int(int64(m.Calls)), pause(m.P50MS), pause(m.P99MS), pause(m.P100MS))
	}
	return ui.NewTable("requests", "errors", "longest pause", "before", "duplicates", "regressions", "gaps", "longest gap").
		Row(r.Requests, r.Errors, time.Duration(r.MaxPauseMS*float64(time.Millisecond)), time.Duration(r.SteadyMS*float64(time.Millisecond)),
			ctl.Bad(r.Duplicates), ctl.Bad(uint64(r.Regressions)), r.Gaps, r.LongestGap)
}

// modesTable has a row for each result.
func modesTable(all []*lab.Result) *ui.Table {
	t := ui.NewTable("mode", "requests", "errors", "longest pause", "before", "duplicates", "regressions", "gaps", "holes")
	for _, r := range all {
		holes := any("")
		if r.Exact != nil {
			holes = ctl.Bad(r.Exact.Holes)
		}
		t.Row(string(r.Mode), r.Requests, r.Errors, time.Duration(r.MaxPauseMS*float64(time.Millisecond)), time.Duration(r.SteadyMS*float64(time.Millisecond)),
			ctl.Bad(r.Duplicates), ctl.Bad(uint64(r.Regressions)), r.Gaps, holes)
	}
	return t
}

// setText tells what callers of a Set saw.
func setText(s lab.SetImpact) string {
	text := fmt.Sprintf("Set %s: %s requests since the fault, %s errors, p99 %s, longest %s, %s numbers left out", s.Set, ui.Int(int64(s.Requests)),
		ui.Int(int64(s.Errors)), pause(s.P99MS), pause(s.MaxPauseMS), ui.Uint(s.Gaps))
	if s.Errors > 0 {
		text += fmt.Sprintf("; the first error came after %s; half of such calls took %s, all within %s, %d without NO_QUORUM and the Set's name", pause(s.FirstMS),
			pause(s.ErrorP50MS), pause(s.ErrorMaxMS), s.Unnamed)
	}
	if s.Dead {
		text += "; it was killed"
	}
	return text
}

// pause is a number of milliseconds.
func pause(ms float64) string { return ui.Duration(time.Duration(ms * float64(time.Millisecond))) }

package bench

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/lab/load"
)

// result is the output of bench; its JSON names are fixed.
type result struct {
	Target    string  `json:"target"`
	Addr      string  `json:"addr"`
	Allocs    int     `json:"allocs"` // in the route table; zero if bench did not ask
	Callers   int     `json:"callers"`
	UIDs      int64   `json:"uids"`
	Dist      string  `json:"dist"`
	Batch     int     `json:"batch"`
	Procs     int     `json:"procs"`      // processors that bench itself could use
	RateAsked float64 `json:"rate_asked"` // numbers a second; zero means as many as possible
	load.Result
	// ClientCPU is the processor time that this process used for a number, in microseconds. Zero means that
	// it is not known.
	ClientCPU float64 `json:"client_cpu_us_per_number"`
	Rising    *rising `json:"rising,omitempty"` // not for snowflake IDs
}

// rising tells of the calls that were checked against earlier ones of their UID.
type rising struct {
	Checked    uint64 `json:"checked"`
	Violations uint64 `json:"violations"`
	First      string `json:"first_violation,omitempty"`
}

// err says what is wrong with a run.
func (r result) err() error {
	switch {
	case r.Rising != nil && r.Rising.Violations > 0:
		return fmt.Errorf("%w: %d of %d checked calls got no larger number, first: %s", errBroken, r.Rising.Violations, r.Rising.Checked, r.Rising.First)
	case r.Calls == 0:
		return fmt.Errorf("%w in %.3g s: %s", errNothing, r.Seconds, cmp.Or(r.errors(), "none"))
	}
	return nil
}

// errors is "OVERLOADED 12, DEADLINE 3".
func (r result) errors() string {
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(r.Errors)) {
		parts = append(parts, fmt.Sprintf("%s %s", code, ui.Uint(r.Errors[code])))
	}
	return strings.Join(parts, ", ")
}

func micros(us float64) time.Duration { return time.Duration(us * float64(time.Microsecond)) }

func (r result) write(w io.Writer, format ui.Format) error {
	if format != ui.FormatTable {
		return ui.Print(w, format, r, nil)
	}
	t := ui.NewTable("target", "callers", "batch", "numbers/s", "calls/s", "p50", "p90", "p99", "p99.9", "max", "failed", "client cpu")
	t.Row(r.Target, r.Callers, r.Batch, uint64(r.Rate), uint64(r.CallRate), micros(r.Latency.P50), micros(r.Latency.P90), micros(r.Latency.P99),
		micros(r.Latency.P999), micros(r.Latency.Max), r.Failed, fmt.Sprintf("%.3gµs", r.ClientCPU))
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s numbers in %.3g s; errors: %s\n", ui.Uint(r.Numbers), r.Seconds, cmp.Or(r.errors(), "none"))
	if r.Timed < r.Calls {
		fmt.Fprintf(w, "latencies are of %s of %s calls, taken in turn\n", ui.Uint(r.Timed), ui.Uint(r.Calls))
	}
	if r.Behind {
		fmt.Fprintf(w, "the rate asked for, %s numbers a second, could not be sent\n", ui.Uint(uint64(r.RateAsked)))
	}
	if r.Rising != nil {
		fmt.Fprintf(w, "numbers rise: %s calls checked, %s violations\n", ui.Uint(r.Rising.Checked), ui.Uint(r.Rising.Violations))
	}
	return nil
}

package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
)

// limits are the limits of check perf.
type limits struct {
	rate      float64       // numbers a second at full load, at least
	p50, p99  time.Duration // at the light load, at most
	p999      time.Duration
	fullP99   time.Duration // at full load, at most
	failed    uint64        // calls over both loads, at most
	lightRate float64       // numbers a second of the light load
}

// check is one figure with its limit; the JSON names are fixed.
type check struct {
	Name    string  `json:"name"`
	Unit    string  `json:"unit"`
	Reached float64 `json:"reached"`
	AtLeast bool    `json:"at_least"` // the limit is a floor; else a ceiling
	Limit   float64 `json:"limit"`
	Pass    bool    `json:"pass"`
}

// verdict is the output of check perf.
type verdict struct {
	Verdict string  `json:"verdict"` // PASS or FAIL
	Checks  []check `json:"checks"`
	Light   result  `json:"light"`
	Full    result  `json:"full"`
}

func checkCommand() *cobra.Command {
	return ctl.Group(&cobra.Command{Use: "check", Short: "say PASS or FAIL of a cluster"}, perfCommand())
}

func perfCommand() *cobra.Command {
	o, l := &options{target: "next"}, limits{}
	cmd := &cobra.Command{
		Use:   "perf",
		Short: "load a cluster lightly, then fully, and hold it to limits: PASS or FAIL",
		Long: `perf takes numbers by the SDK for twice --duration and --warmup: first --light-rate
numbers a second, for the latency of a cluster that is not busy, then as many as --callers
can get. It holds what it measured to the limits given by the flags. Their defaults ask
for what users of such a service see as fast in one datacenter; a cluster on machines far
apart, or the load of your users, may want others.

Exit 0 for PASS, 1 for FAIL.`,
		Example: "  seqctl check perf\n  seqctl check perf --min-rate 500000 --max-p99 1ms -o json",
		Args:    ctl.ExactArgs(),
	}
	o.addTo(cmd)
	f := cmd.Flags()
	f.Lookup("duration").DefValue = "5s"
	o.duration = 5 * time.Second
	f.Float64Var(&l.rate, "min-rate", 50_000, "numbers a second at full load, at least")
	f.DurationVar(&l.p50, "max-p50", time.Millisecond, "half of the calls at light load, at most")
	f.DurationVar(&l.p99, "max-p99", 3*time.Millisecond, "99 % of the calls at light load, at most")
	f.DurationVar(&l.p999, "max-p999", 20*time.Millisecond, "99.9 % of the calls at light load, at most")
	f.DurationVar(&l.fullP99, "max-full-p99", 20*time.Millisecond, "99 % of the calls at full load, at most")
	f.Uint64Var(&l.failed, "max-failed", 0, "`calls` that may fail; default 0")
	f.Float64Var(&l.lightRate, "light-rate", 1000, "numbers a second of the light load")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return o.checkPerf(cmd.Context(), l, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

// sound returns daemon.ErrUsage with the name of an invalid limit.
func (l limits) sound() error {
	for name, d := range map[string]time.Duration{"max-p50": l.p50, "max-p99": l.p99, "max-p999": l.p999, "max-full-p99": l.fullP99} {
		if d <= 0 {
			return daemon.Usage(fmt.Errorf("--%s %v: expected more than 0", name, d))
		}
	}
	for name, rate := range map[string]float64{"min-rate": l.rate, "light-rate": l.lightRate} {
		if !(rate > 0) || math.IsInf(rate, 0) {
			return daemon.Usage(fmt.Errorf("--%s %v: expected more than 0", name, rate))
		}
	}
	return nil
}

func (o *options) checkPerf(ctx context.Context, l limits, stdout, stderr io.Writer) error {
	if err := l.sound(); err != nil {
		return err
	}
	var results [2]result
	var format ui.Format
	for i, rate := range []float64{l.lightRate, 0} {
		o.rate = rate
		p, err := o.check()
		if err != nil {
			return err
		}
		format = p.format
		if results[i], err = o.run(ctx, p, stderr); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted after %.3g s", results[i].Seconds)
		}
	}
	v := judge(l, results[0], results[1])
	if err := v.write(stdout, format); err != nil {
		return err
	}
	return v.err()
}

// judge holds the figures to the limits. A load without an answer passes nothing.
func judge(l limits, light, full result) verdict {
	v := verdict{Verdict: "PASS", Light: light, Full: full}
	ceiling := func(name, unit string, reached, limit float64, known bool) {
		v.Checks = append(v.Checks, check{name, unit, reached, false, limit, known && reached <= limit})
	}
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	served := light.Calls > 0
	ceiling("p50, light load", "µs", light.Latency.P50, us(l.p50), served)
	ceiling("p99, light load", "µs", light.Latency.P99, us(l.p99), served)
	ceiling("p99.9, light load", "µs", light.Latency.P999, us(l.p999), served)
	v.Checks = append(v.Checks, check{"rate, full load", "numbers/s", full.Rate, true, l.rate, full.Rate >= l.rate})
	ceiling("p99, full load", "µs", full.Latency.P99, us(l.fullP99), full.Calls > 0)
	ceiling("failed calls", "", float64(light.Failed+full.Failed), float64(l.failed), true)
	ceiling("numbers that did not rise", "", float64(light.Rising.Violations+full.Rising.Violations), 0, true)
	for _, c := range v.Checks {
		if !c.Pass {
			v.Verdict = "FAIL"
		}
	}
	return v
}

func (v verdict) err() error {
	var short []string
	for _, c := range v.Checks {
		if !c.Pass {
			short = append(short, c.Name)
		}
	}
	if len(short) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", errTooSlow, strings.Join(short, "; "))
}

func (v verdict) write(w io.Writer, format ui.Format) error {
	if format != ui.FormatTable {
		return ui.Print(w, format, v, nil)
	}
	t := ui.NewTable("check", "reached", "wanted", "verdict")
	for _, c := range v.Checks {
		word, cell := "at most ", ctl.State("PASS", true)
		if c.AtLeast {
			word = "at least "
		}
		if !c.Pass {
			cell = ctl.State("FAIL", false)
		}
		t.Row(c.Name, figure(c.Reached, c.Unit), word+figure(c.Limit, c.Unit), cell)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s   errors: %s\n", v.Verdict, cmp.Or(strings.Trim(v.Light.errors()+", "+v.Full.errors(), ", "), "none"))
	return err
}

func figure(x float64, unit string) string {
	if unit == "µs" {
		return ui.Duration(micros(x))
	}
	return strings.TrimSpace(ui.Uint(uint64(x)) + " " + unit)
}

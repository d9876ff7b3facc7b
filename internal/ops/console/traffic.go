package console

import (
	"time"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/internal/process/telemetry"
)

// totals are what rates are made of: sums since the start of processes.
type totals struct {
	at      time.Time
	numbers map[string]uint64 // handed out, by the Set and session of the node
	calls   map[string]Calls  // by the name of the process
}

// traffic is what went on since the snapshot before. A rate of -1 is not known.
type traffic struct {
	UnixMS  int64   `json:"unix_ms"`
	Numbers float64 `json:"numbers_per_s"` // handed out by all AllocSvr, to whomever
	Calls   float64 `json:"calls_per_s"`   // that ended at the routers, or in the drill
	Errors  float64 `json:"errors_per_s"`
	P50     float64 `json:"p50_ms"` // of those calls
	P99     float64 `json:"p99_ms"`
}

func totalsOf(s survey.Status, calls map[string]Calls, now time.Time) totals {
	t := totals{at: now, numbers: map[string]uint64{}, calls: calls}
	for _, a := range s.Allocs {
		if a.State != "no answer" {
			t.numbers[a.Set+"/"+a.Session] = a.Numbers
		}
	}
	return t
}

// since returns the traffic since the totals before. It does not count a node or router that answered
// only once, or that restarted meanwhile.
func (t totals) since(before totals) traffic {
	out := traffic{UnixMS: t.at.UnixMilli(), Numbers: -1, Calls: -1, Errors: -1, P50: -1, P99: -1}
	seconds := t.at.Sub(before.at).Seconds()
	if before.at.IsZero() || seconds <= 0 {
		return out
	}
	out.Numbers = 0
	for session, n := range t.numbers {
		if was, ok := before.numbers[session]; ok && n >= was {
			out.Numbers += float64(n-was) / seconds
		}
	}
	var ended, failed uint64
	var took telemetry.Buckets
	known := false
	for name, c := range t.calls {
		if was, ok := before.calls[name]; ok && c.Ended >= was.Ended {
			known, ended, failed, took = true, ended+c.Ended-was.Ended, failed+c.Failed-min(was.Failed, c.Failed), took.Plus(c.Took.Since(was.Took))
		}
	}
	if !known {
		return out
	}
	out.Calls, out.Errors = float64(ended)/seconds, float64(failed)/seconds
	if took.Total() > 0 {
		out.P50, out.P99 = took.Quantile(0.5)*1000, took.Quantile(0.99)*1000
	}
	return out
}

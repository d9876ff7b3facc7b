package console

import (
	"time"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
)

// totals are what rates are made of: sums since the start of processes.
type totals struct {
	at      time.Time
	numbers map[string]uint64 // handed out, by the session of the node
	calls   *Calls            // nil if unknown
}

// traffic is what went on since the snapshot before. A rate of -1 is not known.
type traffic struct {
	UnixMS  int64   `json:"unix_ms"`
	Numbers float64 `json:"numbers_per_s"` // handed out by all AllocSvr, to whomever
	Calls   float64 `json:"calls_per_s"`   // that ended at this process
	Errors  float64 `json:"errors_per_s"`
	P50     float64 `json:"p50_ms"` // of those calls
	P99     float64 `json:"p99_ms"`
}

func totalsOf(s survey.Status, calls func() Calls, now time.Time) totals {
	t := totals{at: now, numbers: map[string]uint64{}}
	for _, a := range s.Allocs {
		if a.State != "no answer" {
			t.numbers[a.Session] = a.Numbers
		}
	}
	if calls != nil {
		c := calls()
		t.calls = &c
	}
	return t
}

// since returns the traffic since the totals before. It does not count a node that answered only once, or
// that restarted meanwhile.
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
	if t.calls == nil || before.calls == nil {
		return out
	}
	out.Calls = float64(t.calls.Ended-before.calls.Ended) / seconds
	out.Errors = float64(t.calls.Failed-before.calls.Failed) / seconds
	took := t.calls.Took.Since(before.calls.Took)
	if took.Total() > 0 {
		out.P50, out.P99 = took.Quantile(0.5)*1000, took.Quantile(0.99)*1000
	}
	return out
}

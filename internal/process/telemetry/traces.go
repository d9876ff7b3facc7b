package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/process/tracing"
)

var traceSpans = Counter("trace_spans_total", "Spans that ended, by what became of them: sent, dropped since the queue was full, or failed at the collector.", "outcome")

// SendTraces gives what became of the spans; zeros for nil.
func SendTraces(ch chan<- prometheus.Metric, t *tracing.Tracer) {
	n := t.Counts()
	traceSpans.Send(ch, float64(n.Sent), "sent")
	traceSpans.Send(ch, float64(n.Dropped), "dropped")
	traceSpans.Send(ch, float64(n.Failed), "failed")
}

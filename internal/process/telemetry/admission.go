package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
)

var (
	admissionInWork  = Gauge("admission_in_work_keys", "Keys of the calls in work, each call counting 64 more.")
	admissionLimit   = Gauge("admission_limit_keys", "What that may be: more is refused as overloaded.")
	admissionWaiting = Gauge("admission_waiting_callers", "Callers of whom a call waits for its turn: above 0 the processors have more to do than a few milliseconds of work.")
	admissionRefused = Counter("admission_refused_total", "Calls that were refused as overloaded.")
)

// SendAdmission gives the metrics of what bounds a daemon's work.
func SendAdmission(ch chan<- prometheus.Metric, a *gate.Admission) {
	admissionInWork.Send(ch, float64(a.InWork()))
	admissionLimit.Send(ch, float64(a.Limit()))
	admissionWaiting.Send(ch, float64(a.Waiting()))
	admissionRefused.Send(ch, float64(a.Refused()))
}

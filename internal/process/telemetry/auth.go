package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

var authRefused = Counter("auth_refused_total", "Calls that --auth require refused, or that accept served and require would refuse, by reason: unauthenticated, forbidden, quota.", "reason")

// SendAuth gives what the guard refused; zeros for nil.
func SendAuth(ch chan<- prometheus.Metric, by *auth.Guard) {
	for reason, n := range by.Refused() {
		authRefused.Send(ch, float64(n), reason)
	}
}

package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

var refusedTotal = Counter("refused_total", "Calls refused and connections closed, by reason; at most 16 hosts are kept apart, the rest is \"other\".", "reason", "address")

// SendRefused gives what a process refused and closed; every reason is there from the start.
func SendRefused(ch chan<- prometheus.Metric, r *rpc.Refused) {
	others := map[rpc.Reason]uint64{}
	for _, one := range r.Totals() {
		if one.Address == rpc.OtherAddresses {
			others[one.Reason] = one.Count
			continue
		}
		refusedTotal.Send(ch, float64(one.Count), string(one.Reason), one.Address)
	}
	for _, reason := range rpc.Reasons() {
		refusedTotal.Send(ch, float64(others[reason]), string(reason), rpc.OtherAddresses)
	}
}

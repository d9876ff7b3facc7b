package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/membership"
)

var (
	members    = Gauge("members", "Members of the cluster as this node sees them; dead and left ones for a while.", "role", "state")
	gossipView = Gauge("members_table_version", "Highest route table version that any live member has told of.")
	keyFaults  = Counter("members_key_faults_total", "Packets and streams of the membership that this node could not read: gossip keys differ.")
)

// SendMembers gives the membership view; nothing for nil.
func SendMembers(ch chan<- prometheus.Metric, view *membership.View) {
	if view == nil {
		return
	}
	for _, c := range view.Counts() {
		members.Send(ch, float64(c.N), string(c.Role), c.State.String())
	}
	gossipView.Send(ch, float64(view.HighestTableVersion()))
	keyFaults.Send(ch, float64(view.KeyFaults()))
}

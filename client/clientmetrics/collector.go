// Package clientmetrics shows the Stats of clients to Prometheus. It is a package of its own
// so that the SDK depends on no library of metrics:
//
//	prometheus.MustRegister(clientmetrics.New(c))
//
// The values are read at the scrape, and cost nothing between two.
package clientmetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/client"
)

// Source is a *client.Client.
type Source interface{ Stats() client.Stats }

// New collects what one client did. A process with several clients registers each with labels
// of its own: prometheus.WrapRegistererWith(prometheus.Labels{"cluster": "a"}, registry).
func New(of Source) prometheus.Collector { return collector{of} }

type collector struct{ of Source }

func describe(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("seqsvr_client_"+name, help, nil, nil)
}

var (
	retries     = describe("retries_total", "Failed attempts that were made again, one for each key of a batch.")
	pauses      = describe("pauses_total", "Times that a call had no server left to ask and waited for a moment.")
	fallbackIDs = describe("fallback_ids_total", "Snowflake IDs made here while the service was away.")
	version     = describe("route_version", "Version of the route table in use; 0: none yet.")
)

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{retries, pauses, fallbackIDs, version} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	s := c.of.Stats()
	for d, n := range map[*prometheus.Desc]uint64{retries: s.Retries, pauses: s.Pauses, fallbackIDs: s.Fallback.IDs} {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	out <- prometheus.MustNewConstMetric(version, prometheus.GaugeValue, float64(s.RouteVersion))
}

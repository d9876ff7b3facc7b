package clientmetrics_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/client/clientmetrics"
)

type stats client.Stats

func (s stats) Stats() client.Stats { return client.Stats(s) }

func TestEveryFigureOfTheStatsIsCollected(t *testing.T) {
	var _ clientmetrics.Source = (*client.Client)(nil)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(clientmetrics.New(stats{Retries: 3, Pauses: 2, RouteVersion: 7, Fallback: client.FallbackStats{IDs: 11}}))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()+" "+f.GetType().String()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{"seqsvr_client_retries_total COUNTER": 3, "seqsvr_client_pauses_total COUNTER": 2,
		"seqsvr_client_fallback_ids_total COUNTER": 11, "seqsvr_client_route_version GAUGE": 7}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

package telemetry

import (
	"testing"
	"time"
)

func TestQuantilesLieInTheBucketOfTheirValue(t *testing.T) {
	h := Durations()
	if got := h.Buckets().Quantile(0.5); got != 0 {
		t.Errorf("of nothing: got %v, want 0", got)
	}
	for range 90 {
		h.Observe(200 * time.Microsecond)
	}
	before := h.Buckets()
	for range 10 {
		h.Observe(40 * time.Millisecond)
	}
	all := h.Buckets()
	for _, test := range []struct {
		name      string
		got       float64
		low, high float64
	}{
		{"p50 of all", all.Quantile(0.5), 100e-6, 250e-6},
		{"p99 of all", all.Quantile(0.99), 25e-3, 50e-3},
		{"p50 of the later ones", all.Since(before).Quantile(0.5), 25e-3, 50e-3},
		{"p50 of twice all", all.Plus(all).Quantile(0.5), 100e-6, 250e-6},
		{"p50 of the first ones, since nothing", before.Since(Buckets{}).Quantile(0.5), 100e-6, 250e-6},
		{"p99 of nothing and all", Buckets{}.Plus(all).Quantile(0.99), 25e-3, 50e-3},
	} {
		if test.got <= test.low || test.got > test.high {
			t.Errorf("%s: got %v, want above %v up to %v", test.name, test.got, test.low, test.high)
		}
	}
	if got := all.Since(before).Total(); got != 10 {
		t.Errorf("since: got %d values, want 10", got)
	}
	h.Observe(time.Hour)
	if got := h.Buckets().Since(all).Quantile(0.5); got != 10 {
		t.Errorf("above all bounds: got %v, want the last bound, 10 s", got)
	}
}

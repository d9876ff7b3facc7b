package telemetry

import (
	"sort"
	"sync/atomic"
	"time"
)

// Histogram counts whole values in fixed buckets without a lock. Safe for concurrent
// use; make it with Durations, Sizes or Fractions.
//
//	count = sum of counts, at every read: a scrape never sees more in the buckets than in all
type Histogram struct {
	bounds []uint64 // inclusive upper ends, rising
	scale  float64  // from the whole values to the unit of the metric
	counts []atomic.Uint64
	sum    atomic.Uint64
}

func newHistogram(scale float64, bounds ...uint64) *Histogram {
	return &Histogram{bounds: bounds, scale: scale, counts: make([]atomic.Uint64, len(bounds)+1)}
}

// Durations is a histogram in seconds from 50 microseconds to 10 seconds.
func Durations() *Histogram {
	const us, ms, s = uint64(time.Microsecond), uint64(time.Millisecond), uint64(time.Second)
	return newHistogram(1e-9, 50*us, 100*us, 250*us, 500*us, ms, 2*ms+500*us, 5*ms, 10*ms, 25*ms, 50*ms, 100*ms, 250*ms, 500*ms, s, 2*s+500*ms, 5*s, 10*s)
}

// Sizes is a histogram of counts from 1 to 10,000.
func Sizes() *Histogram {
	return newHistogram(1, 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000)
}

// Percents is a histogram of fractions, fed in whole percents: 0 to 200 become 0 to 2.
func Percents() *Histogram {
	return newHistogram(0.01, 0, 5, 10, 25, 50, 75, 100, 150, 200)
}

// Observe counts one duration; one below 0 counts as 0.
func (h *Histogram) Observe(d time.Duration) { h.Add(uint64(max(d, 0)), 1) }

// Add counts a value weight times: once for each that a sample stands for.
func (h *Histogram) Add(value, weight uint64) {
	i := sort.Search(len(h.bounds), func(i int) bool { return value <= h.bounds[i] })
	h.counts[i].Add(weight)
	h.sum.Add(value * weight)
}

// read gives the cumulative buckets that Prometheus wants.
func (h *Histogram) read() (count uint64, sum float64, buckets map[float64]uint64) {
	buckets = make(map[float64]uint64, len(h.bounds))
	for i, bound := range h.bounds {
		count += h.counts[i].Load()
		buckets[float64(bound)*h.scale] = count
	}
	count += h.counts[len(h.bounds)].Load()
	return count, float64(h.sum.Load()) * h.scale, buckets
}

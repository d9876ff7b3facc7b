package telemetry

// Buckets is what a histogram has counted up to one moment. The zero value has counted
// nothing.
type Buckets struct {
	bounds []float64 // inclusive upper ends, in the unit of the metric
	counts []uint64  // one more than bounds; not cumulative
}

// Buckets reads the histogram.
func (h *Histogram) Buckets() Buckets {
	b := Buckets{make([]float64, len(h.bounds)), make([]uint64, len(h.counts))}
	for i, bound := range h.bounds {
		b.bounds[i] = float64(bound) * h.scale
	}
	for i := range h.counts {
		b.counts[i] = h.counts[i].Load()
	}
	return b
}

// NewBuckets returns what Values took apart. If the number of counts does not fit the bounds, it has no values.
func NewBuckets(bounds []float64, counts []uint64) Buckets {
	if len(counts) != len(bounds)+1 {
		return Buckets{}
	}
	return Buckets{bounds, counts}
}

// Values returns the inclusive upper ends, and the counts, of which there is one more.
func (b Buckets) Values() (bounds []float64, counts []uint64) { return b.bounds, b.counts }

// Plus is both together, of histograms with the same bounds.
func (b Buckets) Plus(other Buckets) Buckets {
	return b.combine(other, func(x, y uint64) uint64 { return x + y })
}

// Since is what came after an earlier moment of the same histogram.
func (b Buckets) Since(before Buckets) Buckets {
	return b.combine(before, func(x, y uint64) uint64 { return x - min(x, y) })
}

func (b Buckets) combine(other Buckets, by func(x, y uint64) uint64) Buckets {
	if b.counts == nil {
		b = Buckets{other.bounds, make([]uint64, len(other.counts))}
	}
	out := Buckets{b.bounds, append([]uint64(nil), b.counts...)}
	for i, n := range other.counts {
		out.counts[i] = by(out.counts[i], n)
	}
	return out
}

// Total returns the number of values.
func (b Buckets) Total() (n uint64) {
	for _, c := range b.counts {
		n += c
	}
	return n
}

// Quantile returns the value that a part q of all values do not exceed. It assumes that the values of a
// bucket are spread evenly. Above the last bound it returns that bound. Without values it returns zero.
func (b Buckets) Quantile(q float64) float64 {
	total := b.Total()
	if total == 0 {
		return 0
	}
	rank, low := q*float64(total), 0.0
	for i, bound := range b.bounds {
		n := float64(b.counts[i])
		if n > 0 && rank <= n {
			return low + (bound-low)*rank/n
		}
		rank -= n
		low = bound
	}
	return low
}

package replay

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestAQuantileIsAtMostOneThirtySecondTooHigh(t *testing.T) {
	var h histogram
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]time.Duration, 10_000)
	for i := range values {
		values[i] = time.Duration(random.ExpFloat64() * float64(time.Millisecond))
		h.add(values[i])
	}
	slices.Sort(values)
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999} {
		exact := values[int(q*float64(len(values)))]
		got := h.quantile(q)
		if got < exact || float64(got) > float64(exact)*(1+1.0/32)+1 {
			t.Errorf("quantile %v: got %v, exact %v", q, got, exact)
		}
	}
}

func TestEveryDurationHasABucketThatHoldsIt(t *testing.T) {
	for _, v := range []uint64{0, 1, 31, 32, 33, 63, 64, 65, 1000, 1 << 40, math.MaxInt64, math.MaxUint64} {
		b := bucket(v)
		if b < 0 || b >= len(histogram{}.counts) || upper(b) < v || b > 0 && upper(b-1) >= v {
			t.Errorf("%d: bucket %d, to %d", v, b, upper(b))
		}
	}
}

func TestAnEmptyHistogramHasQuantilesOfZero(t *testing.T) {
	var h histogram
	if got := h.quantile(0.99); got != 0 {
		t.Errorf("got %v, want 0", got)
	}
	h.add(-time.Second)
	if got := h.quantile(0.99); got != 0 {
		t.Errorf("a negative duration: got %v, want 0", got)
	}
}

func TestMergedHistogramsCountAll(t *testing.T) {
	var a, b histogram
	a.add(time.Microsecond)
	b.add(time.Second)
	a.merge(&b)
	if got := a.quantile(1); a.total != 2 || got < time.Second {
		t.Errorf("got %d and %v, want 2 and at least 1s", a.total, got)
	}
}

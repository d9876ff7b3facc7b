package replay

import (
	"math/bits"
	"time"
)

// subBits: each power of two is cut into 2^subBits buckets, so that a quantile is at
// most 1/32 too high.
const subBits = 5

// histogram counts durations in buckets of nearly equal relative width. The zero
// value is empty. For one goroutine.
type histogram struct {
	counts [(64 - subBits + 1) << subBits]uint64
	total  uint64
}

// bucket of v nanoseconds: exact below 2^subBits, then by the first subBits+1 bits.
func bucket(v uint64) int {
	if v < 1<<subBits {
		return int(v)
	}
	shift := bits.Len64(v) - subBits - 1
	return (shift << subBits) + int(v>>shift)
}

// upper is the largest value of a bucket.
func upper(b int) uint64 {
	if b < 1<<subBits {
		return uint64(b)
	}
	shift := b>>subBits - 1
	return (uint64(b-shift<<subBits)+1)<<shift - 1
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucket(uint64(max(d, 0)))]++
	h.total++
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
}

// quantile is the duration that a share q, 0 to 1, of all did not exceed; 0 when empty.
func (h *histogram) quantile(q float64) time.Duration {
	want := uint64(q * float64(h.total))
	var sum uint64
	for i, n := range h.counts {
		if sum += n; n > 0 && sum > want || sum == h.total && n > 0 {
			return time.Duration(upper(i))
		}
	}
	return 0
}

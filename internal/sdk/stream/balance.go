package stream

import (
	"sync/atomic"
	"time"
)

// wide is the number of keys waiting or in flight at one time from which both streams are used. It is the
// peak of this window and the one before. Fewer keys make larger batches on one stream, which is faster.
// With more keys, half on each, the streams take turns: while the server serves one batch, the callers of
// the other get their answers and call again.
const wide = 288

// balance says which of the two streams of a server a key goes by.
type balance struct {
	load [2]atomic.Int64 // keys waiting or in flight, by stream

	peak, former atomic.Int64 // the most at one time in this window, and in the one before
	born         time.Time
	window       atomic.Int64 // when this one began, as nanoseconds after born
}

// pick is the stream for the next key: the first, or the one that has less to do.
func (b *balance) pick() int {
	first, second := b.load[0].Load(), b.load[1].Load()
	n := first + second
	if n > b.peak.Load() {
		b.peak.Store(n)
	}
	if second < first && max(n, b.peak.Load(), b.former.Load()) >= wide {
		return 1
	}
	return 0
}

// age begins a window when it is time.
func (b *balance) age(now time.Time) {
	began, t := b.window.Load(), int64(now.Sub(b.born))
	if t-began >= int64(floorWindow) && b.window.CompareAndSwap(began, t) {
		b.former.Store(b.peak.Swap(0))
	}
}

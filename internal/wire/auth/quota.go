package auth

import (
	"sync/atomic"
	"time"
)

// Rate limits the keys a second of a principal. The zero value means no limit.
type Rate struct {
	PerSecond uint64 // keys, to 1,000,000,000
	Burst     uint64 // keys that may come at once after a pause
}

const maxRate = 1_000_000_000

// quota is a generic cell rate algorithm in one integer. It begins full.
type quota struct {
	full atomic.Int64 // when it will be full again, in nanoseconds of the guard's clock
}

// charge takes the keys at a moment; wait is how much later to come again, 0 if they were
// taken. A call of more than the burst passes when nothing else is charged, and those
// behind it wait for all of it.
func (q *quota) charge(r Rate, keys int, now time.Duration) (wait time.Duration) {
	if r.PerSecond == 0 || keys <= 0 {
		return 0
	}
	cost := int64(float64(keys) * 1e9 / float64(r.PerSecond))
	burst := int64(float64(r.Burst) * 1e9 / float64(r.PerSecond))
	for {
		was := q.full.Load()
		from := max(was, int64(now))
		if late := from + min(cost, burst) - burst - int64(now); late > 0 {
			return time.Duration(late)
		}
		if q.full.CompareAndSwap(was, from+cost) {
			return 0
		}
	}
}

package snowflake

import (
	"sync/atomic"
	"time"
)

// rereadEvery bounds the number of single IDs between two readings of the clock, a power of two. So a busy
// generator follows the clock even when the runtime is too busy to run timers. The cost of a reading is
// spread over as many IDs.
const rereadEvery = 64

// readings remembers what a clock said for at most an age, so that singles need not
// read it each time: that costs several times what an ID does.
//
// All readings pass through word, those that are not remembered too, in one order. With
// a clock that only moves forward no caller therefore gets an older reading than one
// that another caller had before, which would look like a clock that moved back.
type readings struct {
	clock Clock
	age   time.Duration // if zero, every reading is fresh, and word stays stale
	// word is ms<<1, and staleBit once the reading is too old for use.
	word atomic.Int64
	// armed says that expiry will set staleBit within age. It is cleared before the bit
	// is set: a goroutine that stores a reading in between arms it again, for nothing.
	armed  atomic.Bool
	expiry *time.Timer
}

const staleBit = 1

// start makes the zero readings ready. The timer runs only while a reading is
// remembered: nothing is left to be closed.
func (r *readings) start(clock Clock, age time.Duration) {
	r.clock, r.age = clock, age
	r.word.Store(staleBit)
	if age <= 0 {
		return
	}
	r.expiry = time.AfterFunc(age, func() {
		r.armed.Store(false)
		r.word.Or(staleBit)
	})
}

// remembered is a reading for the ID at the position, if there is one that serves.
func (r *readings) remembered(position uint64) (ms int64, ok bool) {
	word := r.word.Load()
	return word >> 1, word&staleBit == 0 && position&(rereadEvery-1) != 0
}

// fresh reads the clock. A reading that others overtook is made again.
func (r *readings) fresh() int64 {
	if r.age <= 0 {
		return r.clock()
	}
	for {
		was := r.word.Load()
		ms := r.clock()
		if was == ms<<1 {
			return ms
		}
		if r.word.CompareAndSwap(was, ms<<1) {
			if !r.armed.Swap(true) {
				r.expiry.Reset(r.age)
			}
			return ms
		}
	}
}

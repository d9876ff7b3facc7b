package segment

import (
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Tuning of the step: a segment should last for minutes, so that a store that is
// away for a while is not noticed, and not for hours, since its rest is skipped when
// the tag moves. The bounds are Leaf's.
const (
	shortLived = 15 * time.Minute // used up faster: the step doubles
	longLived  = 30 * time.Minute // lasted longer: it halves
)

// fetchAt is the part of a segment, in percent, after the use of which the next one
// is fetched.
const fetchAt = 10

// buffers are the numbers of one tag under one epoch: the segment in use and the
// next one. Pure; time comes in as an argument.
//
//	from <= cur <= end <= confirmed <= 2^53-1
//
// except that a restore from a backup may leave all of them above 2^53-1; then
// nothing is handed out.
type buffers struct {
	cur       uint64 // last number handed out or skipped
	from, end uint64 // the segment in use is (from, end]
	confirmed uint64 // W stores have it (I5); the next segment is (end, confirmed]
	target    uint64 // > confirmed while a step to it is wanted or in flight, else 0
	floor     uint64 // nothing up to here is handed out; may lie above confirmed
	last      uint64 // nothing above it is handed out
	era       uint64 // where the tags of an era that was restored begin: starts count from there
	since     time.Duration

	step        uint64 // of the next segment: least <= step <= most
	least, most uint64
}

// newBuffers starts above base; W stores have confirmed. era is where the tags of the era
// begin, 0 unless it was restored.
func newBuffers(base, confirmed, era uint64, now time.Duration, limits Tag) buffers {
	b := buffers{cur: base, era: era, from: base, end: confirmed, confirmed: confirmed, since: now, step: limits.MinStep}
	b.limit(limits)
	return b
}

// limit takes new limits in.
func (b *buffers) limit(t Tag) {
	b.least, b.most = t.MinStep, t.MaxStep
	b.step = max(b.least, min(b.step, b.most))
	b.floor = max(b.floor, t.above(b.era))
	b.last = t.last()
}

// above returns the number above which an era that begins at some number starts the tag. The
// eras before may have begun at the same start, and neither that nor what they handed out
// from there need be in the backup.
func (t Tag) above(era uint64) uint64 { return era + t.Start - 1 }

// low returns the number above which the next one is.
func (b *buffers) low() uint64 { return max(b.cur, b.floor) }

// fits reports whether n more numbers end at or below the last.
func (b *buffers) fits(n uint64) bool { return b.low() <= b.last && n <= b.last-b.low() }

// take takes n >= 1 numbers, first..last, if they are confirmed.
func (b *buffers) take(n uint64, now time.Duration) (first, last uint64, ok bool) {
	low := b.low()
	if !b.fits(n) || low > b.confirmed || n > b.confirmed-low {
		return 0, 0, false
	}
	b.cur = low + n
	if b.cur > b.end {
		b.turn(now)
	}
	return low + 1, b.cur, true
}

// turn makes the next segment the one in use and sets the step of the one after it.
func (b *buffers) turn(now time.Duration) {
	b.step = tune(b.step, now-b.since, b.least, b.most)
	b.from, b.end, b.since = b.end, b.confirmed, now
}

// tune returns the step after a segment that lasted so long.
func tune(step uint64, lasted time.Duration, least, most uint64) uint64 {
	switch {
	case lasted < shortLived:
		step *= 2
	case lasted > longLived:
		step /= 2
	}
	return max(least, min(step, most))
}

// due reports whether it is time to fetch the next segment.
func (b *buffers) due() bool {
	return b.confirmed == b.end && b.target == 0 && b.confirmed < b.last &&
		(b.cur-b.from)*100 >= (b.end-b.from)*fetchAt
}

// want raises the target so that need, the upper end of what is asked for, fits with
// a segment to spare. true if a step is to be made that was not asked for before.
func (b *buffers) want(need uint64) bool {
	target := min(max(need, b.confirmed)+b.step, uint64(seq.MaxSeq))
	if target <= b.confirmed || target <= b.target {
		return false
	}
	b.target = target
	return true
}

// confirm takes in that W stores have ceiling under the epoch. Only that lets numbers
// up to ceiling out (I5).
func (b *buffers) confirm(ceiling uint64) {
	b.confirmed = max(b.confirmed, ceiling)
	if b.target <= b.confirmed {
		b.target = 0
	}
}

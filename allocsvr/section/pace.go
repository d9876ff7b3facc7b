package section

import (
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Tuning of a section's step (docs/decisions.md, 014).
const (
	// paceAim is for how long a busy section's step should last. A step is asked for
	// when half of the one before is left, so that a store may be away for half of it.
	paceAim = 2 * time.Second
	// paceGrowth is by how much a step may be larger than the one before: what is
	// skipped after a crash stays in proportion to what was really used.
	paceGrowth = 4
)

// pace is how large a section's steps are. Pure; time comes in as an argument, on a
// clock that never goes back.
//
//	least <= step <= most
type pace struct {
	least, most uint64
	known       bool          // a step was asked for under this epoch
	high        uint64        // the highest number of the section when it was
	at          time.Duration // when

	step uint64 // the last one that was asked for
}

func newPace(s *seq.Space) pace {
	least, most := s.Steps()
	return pace{least: least, most: most, step: least}
}

// next is the step to ask for now that the section's highest number is high, which
// never falls.
func (p *pace) next(high uint64, now time.Duration) uint64 {
	if p.known {
		p.step = tune(p.step, high-p.high, now-p.at, p.least, p.most)
	}
	p.known, p.high, p.at = true, high, now
	return p.step
}

// tune is the step after one of which used numbers were used in the time that it took:
// what lasts for paceAim at that rate, at least least, at most most and paceGrowth
// times the step before. A section that was idle so gets least again at once, however
// busy it was before.
func tune(step, used uint64, took time.Duration, least, most uint64) uint64 {
	rate := float64(used) / float64(max(took, 1))
	want := rate * float64(paceAim)
	largest := most
	if step <= most/paceGrowth {
		largest = max(least, step*paceGrowth)
	}
	if want >= float64(largest) { // first, since a float64 may not fit a uint64
		return largest
	}
	return max(least, uint64(want))
}

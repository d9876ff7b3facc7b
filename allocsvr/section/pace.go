package section

import (
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Tuning of a section's step (docs/decisions.md, 014).
const (
	// paceAim is the intended duration of a busy section's step. The next step is begun when half of a step
	// is left, so a store may be away for half of paceAim.
	paceAim = 2 * time.Second
	// paceGrowth bounds the size of a step relative to the step before. So the numbers skipped after a
	// crash stay in proportion to the numbers used.
	paceGrowth = 4
)

// pace computes the size of a section's steps. It is pure. Time comes in as an argument, on a clock that
// never goes back.
//
//	least <= step <= most
type pace struct {
	least, most uint64
	high        uint64        // the highest number of the section when the last step was asked for
	at          time.Duration // when; below zero before the first step of the epoch

	step uint64 // the last one that was asked for
}

func newPace(s *seq.Space) pace {
	least, most := s.Steps()
	return pace{least: least, most: most, at: -1, step: least}
}

// next returns the step to ask for now that the section's highest number is high, which
// never falls.
func (p *pace) next(high uint64, now time.Duration) uint64 {
	if p.at >= 0 {
		p.step = tune(p.step, high-p.high, now-p.at, p.least, p.most)
	}
	p.high, p.at = high, now
	return p.step
}

// tune returns the next step after a step of which used numbers were used in the time took. The step lasts
// for paceAim at that rate. It is no smaller than least, and no larger than most or paceGrowth times the
// step before. So after an idle time a section gets least again at once, however busy it was before.
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

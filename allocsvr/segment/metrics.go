package segment

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
)

var (
	mNumbers  = telemetry.Counter("segment_numbers_total", "Numbers of all tags handed out.")
	mTakes    = telemetry.Counter("segment_takes_total", "Requests of all tags that got their numbers.")
	mFailed   = telemetry.Counter("segment_takes_failed_total", "Requests of all tags that ended in an error.")
	mTags     = telemetry.Gauge("segment_tags", "Tags that were asked for at this node, by state; served: owned, and the lease holds.", "state")
	mHeadroom = telemetry.Gauge("segment_headroom_min_ratio", "Least share of a step that is left below the confirmed ceiling, over all owned tags; 1 without one.")
	mLease    = telemetry.Gauge("segment_lease_remaining_seconds", "Least remaining lease of all owned tags; 0 without one, or when some are not served.")
)

// count notes how a take ended.
func (s *Service) count(n uint32, err error) {
	if err != nil {
		s.failed.Add(1)
		return
	}
	s.takes.Add(1)
	s.numbers.Add(uint64(n))
}

// Send sends the metrics of the tags, by no tag's name: there may be very many.
func (s *Service) Send(ch chan<- prometheus.Metric) {
	mNumbers.Send(ch, float64(s.numbers.Load()))
	mTakes.Send(ch, float64(s.takes.Load()))
	mFailed.Send(ch, float64(s.failed.Load()))
	var states [owned + 1]int
	served, least, left := 0, math.Inf(1), time.Duration(math.MaxInt64)
	now := s.cfg.Clock.Now()
	for _, c := range s.all() {
		c.mu.Lock()
		states[c.state]++
		if c.state == owned {
			remaining := time.Duration(0)
			if c.hold != nil {
				remaining = max(0, c.hold.Until()-now)
			}
			if remaining > 0 {
				served++
			}
			left = min(left, remaining)
			b := &c.buffers
			least = min(least, float64(b.confirmed-min(b.low(), b.confirmed))/float64(max(b.step, 1)))
		}
		c.mu.Unlock()
	}
	if states[owned] == 0 {
		least, left = 1, 0
	}
	for st, n := range states {
		mTags.Send(ch, float64(n), state(st).String())
	}
	mTags.Send(ch, float64(served), "served")
	mHeadroom.Send(ch, least)
	mLease.Send(ch, left.Seconds())
}

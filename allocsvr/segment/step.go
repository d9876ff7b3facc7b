package segment

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// stepRetry is the pause before a step that was not confirmed is repeated.
const stepRetry = 20 * time.Millisecond

// stepper confirms the next segments: everything due at one moment travels in one
// message and one transaction per store.
type stepper struct {
	s *Service

	mu  sync.Mutex // guards due
	due []*cell

	kick chan struct{}
}

func newStepper(s *Service) *stepper { return &stepper{s: s, kick: make(chan struct{}, 1)} }

// add tells that the target of c was raised. The caller may hold c.mu.
func (s *stepper) add(c *cell) {
	s.mu.Lock()
	s.due = append(s.due, c)
	s.mu.Unlock()
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// run steps until ctx ends.
func (s *stepper) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.kick:
		}
		s.mu.Lock()
		due := s.due
		s.due = nil
		s.mu.Unlock()
		again := s.step(ctx, due)
		if len(again) == 0 {
			continue
		}
		time.AfterFunc(stepRetry, func() {
			if ctx.Err() != nil {
				return
			}
			for _, c := range again {
				s.add(c)
			}
		})
	}
}

// planned is one step as it was asked for.
type planned struct {
	c     *cell
	epoch seq.Epoch
	max   uint64
}

// step writes the targets and returns the tags for which it must be repeated: until
// the same or a larger value is confirmed under the same epoch, the old ceiling
// stays. A higher epoch ends the tag here at once.
func (s *stepper) step(ctx context.Context, cells []*cell) (again []*cell) {
	plans, items := s.plan(cells)
	if len(items) == 0 {
		return nil
	}
	for i, out := range s.s.cfg.Registers.Step(ctx, s.s.cfg.Session, items) {
		p := plans[i]
		switch {
		case out.State == quorum.Won:
			p.c.confirm(p.epoch, p.max)
		case errors.Is(out.Err, quorum.ErrNack), out.State == quorum.Refused && p.epoch.Less(out.Promised):
			s.s.lose(p.c, p.epoch, out.Promised)
		default:
			p.c.note(p.epoch, out.Err)
			again = append(again, p.c)
		}
	}
	return again
}

func (s *stepper) plan(cells []*cell) (plans []planned, items []quorum.StepItem) {
	seen := make(map[*cell]bool, len(cells))
	for _, c := range cells {
		if seen[c] {
			continue
		}
		seen[c] = true
		c.mu.Lock()
		p := planned{c: c, epoch: c.epoch, max: c.buffers.target}
		ok := c.state == owned && c.buffers.target > c.buffers.confirmed
		c.mu.Unlock()
		if ok {
			plans = append(plans, p)
			items = append(items, quorum.StepItem{Register: c.register, Round: p.epoch.Round, Max: p.max})
		}
	}
	return plans, items
}

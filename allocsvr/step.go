package allocsvr

import (
	"context"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/tracing"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// stepper moves max_seq forward for all sections that are due: everything due at
// one moment travels in one message and one transaction per store.
type stepper struct {
	a *Alloc

	mu    sync.Mutex // guards due and calls
	due   []*cell
	calls tracing.Calls // traced ones that wait for what is due

	kick *loop // something is due
	rush *loop // and a request waits for it
}

func newStepper(a *Alloc) *stepper { return &stepper{a: a, kick: newLoop(), rush: newLoop()} }

// stepGather is how far apart messages are sent while nobody waits for one: a section
// that steps ahead has half a step left, so that what is due meanwhile may join it.
// Stores so commit at most a hundred times a second for one allocator, however many
// sections it has.
const stepGather = 10 * time.Millisecond

// ahead asks for a step so that need fits below the ceiling. Needs c.mu.
func (a *Alloc) ahead(c *cell, need uint64) {
	a.aheadFor(context.Background(), c, need)
}

// aheadFor is ahead for the call that ctx belongs to. Needs c.mu.
func (a *Alloc) aheadFor(ctx context.Context, c *cell, need uint64) {
	if c.want(need, a.clock.Now()) {
		a.stepper.addFor(ctx, c, need > c.confirmed)
	}
}

// add tells that c.target was raised; rush says that a request waits for it. The caller
// may hold c.mu.
func (s *stepper) add(c *cell, rush bool) { s.addFor(context.Background(), c, rush) }

// addFor is add for the call that ctx belongs to.
func (s *stepper) addFor(ctx context.Context, c *cell, rush bool) {
	s.mu.Lock()
	s.due = append(s.due, c)
	s.calls = s.a.traces.Note(s.calls, ctx)
	s.mu.Unlock()
	if rush {
		s.rush.kick()
	}
	s.kick.kick()
}

// run steps until ctx ends.
func (s *stepper) run(ctx context.Context) {
	sent := s.a.clock.Now() - stepGather
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.kick.c:
		}
		if early := sent + stepGather - s.a.clock.Now(); early > 0 && !s.rush.wait(ctx, early) {
			return
		}
		sent = s.a.clock.Now()
		select { // what it was for is in due by now
		case <-s.rush.c:
		default:
		}
		s.mu.Lock()
		due, calls := s.due, s.calls
		s.due, s.calls = nil, nil
		s.mu.Unlock()
		if again := s.stepFor(ctx, due, calls); len(again) > 0 {
			s.retry(ctx, again)
		}
	}
}

// retry brings unknown outcomes back after a moment, without keeping others waiting.
func (s *stepper) retry(ctx context.Context, cells []*cell) {
	time.AfterFunc(stepRetry, func() {
		if ctx.Err() != nil {
			return
		}
		for _, c := range cells {
			s.add(c, false)
		}
	})
}

// stepRetry is the pause before a step of unknown outcome is repeated.
const stepRetry = 20 * time.Millisecond

// planned is one step as it was asked for.
type planned struct {
	c     *cell
	epoch seq.Epoch
	max   uint64
}

// stepFor is step with a span: of the calls that wait for it, or, while it is ahead of all
// calls, one of its own now and then.
func (s *stepper) stepFor(ctx context.Context, cells []*cell, calls tracing.Calls) (again []*cell) {
	var span tracing.Span
	if len(calls) > 0 {
		ctx, span = s.a.traces.Joint(ctx, "alloc.step", calls)
	} else {
		ctx, span = s.a.traces.Root(ctx, "alloc.step")
	}
	span.Int("sections", len(cells))
	again = s.step(ctx, cells)
	span.Int("unknown", len(again))
	span.End(nil)
	return again
}

// step writes the targets of the cells and returns those whose outcome is
// unknown: their old ceiling stays until the same or a larger value is confirmed.
func (s *stepper) step(ctx context.Context, cells []*cell) (again []*cell) {
	plans, items := s.plan(cells)
	if len(items) == 0 {
		return nil
	}
	for i, out := range s.a.registers.Step(ctx, s.a.session, items) {
		p := plans[i]
		switch out.State {
		case quorum.Won:
			p.c.confirm(p.epoch, p.max)
			s.a.stats.steps.Add(1)
		case quorum.Refused:
			if out.Promised.Compare(p.epoch) > 0 {
				s.a.lose(p.c, p.epoch, out.Promised)
			} else {
				again = append(again, p.c)
			}
		default:
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
		p := planned{c: c, epoch: c.epoch, max: c.target}
		ok := c.state == owned && c.target > c.confirmed
		c.mu.Unlock()
		if !ok {
			continue
		}
		plans = append(plans, p)
		items = append(items, quorum.StepItem{Register: seq.SectionRegister(c.id), Round: p.epoch.Round, Max: p.max})
	}
	return plans, items
}

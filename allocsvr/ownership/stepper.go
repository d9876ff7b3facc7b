package ownership

import (
	"context"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
)

// Gather is the pause between messages while no request waits for one. A register that steps ahead of need
// has numbers left, so steps that become due meanwhile may join the message. So stores commit at most a
// hundred times a second for one kind of register of one node.
const Gather = 10 * time.Millisecond

// Retry is the pause before a step that was not confirmed is repeated.
const Retry = 20 * time.Millisecond

// Stepper raises the ceilings of many registers. All steps due at one moment share one message and one
// transaction at each store.
type Stepper[R Owned] struct {
	holder *Holder
	clock  clock.Clock
	traces *tracing.Tracer

	mu    sync.Mutex // guards due and calls
	due   []R
	calls tracing.Calls // traced ones that wait for what is due

	kick *wake.Signal // something is due
	rush *wake.Signal // and a request waits for it
}

// NewStepper makes a Stepper with nothing due. traces may be nil.
func NewStepper[R Owned](h *Holder, c clock.Clock, traces *tracing.Tracer) *Stepper[R] {
	return &Stepper[R]{holder: h, clock: c, traces: traces, kick: wake.New(), rush: wake.New()}
}

// Add tells that a step of r is due, for the call that ctx belongs to; rush says that
// a request waits for it. The caller may hold locks that r's methods take.
func (s *Stepper[R]) Add(ctx context.Context, r R, rush bool) {
	s.mu.Lock()
	s.due = append(s.due, r)
	s.calls = s.traces.Note(s.calls, ctx)
	s.mu.Unlock()
	if rush {
		s.rush.Kick()
	}
	s.kick.Kick()
}

// Run steps until ctx ends.
func (s *Stepper[R]) Run(ctx context.Context) {
	sent := s.clock.Now() - Gather
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.kick.C():
		}
		if early := sent + Gather - s.clock.Now(); early > 0 && !s.rush.Wait(ctx, early) {
			return
		}
		sent = s.clock.Now()
		s.rush.Clear() // what it was for is in due by now
		if _, again := s.Flush(ctx); len(again) > 0 {
			s.retry(ctx, again)
		}
	}
}

// Flush sends what is due, and says of how many registers that was told and which are to be
// repeated. Its span is of the calls that wait for it, or, while it is ahead of all calls,
// one of its own now and then.
func (s *Stepper[R]) Flush(ctx context.Context) (told int, again []R) {
	s.mu.Lock()
	due, calls := s.due, s.calls
	s.due, s.calls = nil, nil
	s.mu.Unlock()
	var span tracing.Span
	if len(calls) > 0 {
		ctx, span = s.traces.Joint(ctx, "alloc.step", calls)
	} else {
		ctx, span = s.traces.Root(ctx, "alloc.step")
	}
	span.Int("registers", len(due))
	again = Raise(ctx, s.holder, due)
	span.Int("unknown", len(again))
	span.End(nil)
	return len(due), again
}

// retry brings back what was not confirmed after a moment, without keeping others waiting.
func (s *Stepper[R]) retry(ctx context.Context, again []R) {
	time.AfterFunc(Retry, func() {
		if ctx.Err() != nil {
			return
		}
		for _, r := range again {
			s.Add(context.Background(), r, false)
		}
	})
}

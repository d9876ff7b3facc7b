package allocsvr

import (
	"context"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// seat is the arbiter's seat: a register like a section's, held under a lease by
// one session at a time. Its value has no meaning.
type seat struct {
	mu    sync.Mutex // guards epoch and hold
	epoch seq.Epoch
	hold  Hold // nil: not ours
}

// held says whether nobody else can have the seat by now.
func (s *seat) held(now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hold != nil && now < s.hold.Until()
}

// drop forgets the seat if it is still under the epoch.
func (s *seat) drop(epoch seq.Epoch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold != nil && s.epoch == epoch {
		s.hold.Drop()
		s.hold, s.epoch = nil, seq.Epoch{}
	}
}

// vacate gives the seat up and tells under which epoch it was held.
func (s *seat) vacate() (seq.Epoch, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold == nil {
		return seq.Epoch{}, false
	}
	s.hold.Drop()
	epoch := s.epoch
	s.hold, s.epoch = nil, seq.Epoch{}
	return epoch, true
}

// take tries to sit down. after is how long the holder's lease lasts, 0 if unknown.
func (s *seat) take(ctx context.Context, a *Alloc) (ok bool, after time.Duration) {
	regs := []seq.Register{seq.SeatRegister}
	out := a.registers.Probe(ctx, a.session, regs)[0]
	if out.State != quorum.Won {
		return false, out.Remaining
	}
	round := out.Promised.Round + 1
	out = a.registers.Prepare(ctx, a.session, []quorum.PrepareItem{{Register: seq.SeatRegister, Round: round}})[0]
	if out.State != quorum.Won {
		return false, out.Remaining
	}
	out = a.registers.Step(ctx, a.session, []quorum.StepItem{{Register: seq.SeatRegister, Round: round, Max: out.Max + 1}})[0]
	if out.State != quorum.Won {
		return false, 0
	}
	hold := a.leases.Attach(seq.SeatRegister, round)
	s.mu.Lock()
	if s.hold != nil {
		s.hold.Drop()
	}
	s.hold, s.epoch = hold, seq.Epoch{Round: round, Session: a.session}
	s.mu.Unlock()
	return true, 0
}

// owned says whether the seat was taken and not lost, whatever the lease says.
func (s *seat) owned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hold != nil
}

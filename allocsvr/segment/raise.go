package segment

import (
	"context"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/quorum"
)

// rising is a tag that is owned, as the stepper sees it: its ownership.Owned.
type rising struct {
	s *Service
	c *cell
}

// raise has the next segment confirmed; rush says that a request waits for it. The caller
// may hold c.mu.
func (s *Service) raise(c *cell, rush bool) { s.stepper.Add(context.Background(), rising{s, c}, rush) }

// Next implements ownership.Owned.
func (r rising) Next() (ownership.Step, bool) {
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	return ownership.Step{Register: c.register, Epoch: c.epoch, Max: c.buffers.target}, c.state == owned && c.buffers.target > c.buffers.confirmed
}

// Confirmed implements ownership.Owned.
func (r rising) Confirmed(s ownership.Step) { r.c.confirm(s.Epoch, s.Max) }

// Unconfirmed implements ownership.Owned.
func (r rising) Unconfirmed(s ownership.Step, out quorum.Outcome) { r.c.note(s.Epoch, out.Err) }

// Lost implements ownership.Owned.
func (r rising) Lost(s ownership.Step, out quorum.Outcome) { r.s.lose(r.c, s.Epoch, out.Promised) }

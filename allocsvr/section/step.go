package section

import (
	"context"
	"errors"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// rising is a section that is owned, as the stepper sees it: its ownership.Owned.
type rising struct {
	t *Table
	c *Section
}

// ahead asks for a step so that need fits below the ceiling, for the call that ctx belongs
// to. Needs c.mu.
func (t *Table) ahead(ctx context.Context, c *Section, need uint64) {
	if c.want(need, t.clock.Now()) {
		t.stepper.Add(ctx, rising{t, c}, need > c.confirmed)
	}
}

// Next implements ownership.Owned.
func (r rising) Next() (ownership.Step, bool) {
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	return ownership.Step{Register: seq.SectionRegister(c.id), Epoch: c.epoch, Max: c.target}, c.state == Owned && c.target > c.confirmed
}

// Confirmed implements ownership.Owned.
func (r rising) Confirmed(s ownership.Step) {
	r.c.confirm(s.Epoch, s.Max)
	r.t.full.Store(false)
	r.t.stats.steps.Add(1)
}

// Unconfirmed implements ownership.Owned: the old ceiling stays until the same or a larger
// value is confirmed.
func (r rising) Unconfirmed(_ ownership.Step, out quorum.Outcome) {
	r.t.full.Store(errors.Is(out.Err, seq.ErrStoreFull))
}

// Lost implements ownership.Owned.
func (r rising) Lost(s ownership.Step, out quorum.Outcome) { r.t.lose(r.c, s.Epoch, out.Promised) }

package section

import (
	"context"
	"errors"

	"github.com/seqsvr/seqsvr/allocsvr/tenure"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// rising is a section that is owned, as the stepper sees it: its tenure.Owned.
type rising struct {
	t *Table
	c *Cell
}

// ahead asks for a step so that need fits below the ceiling, for the call that ctx belongs
// to. Needs c.mu.
func (t *Table) ahead(ctx context.Context, c *Cell, need uint64) {
	if c.want(need, t.clock.Now()) {
		t.stepper.Add(ctx, rising{t, c}, need > c.confirmed)
	}
}

// Next implements tenure.Owned.
func (r rising) Next() (tenure.Step, bool) {
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	return tenure.Step{Register: seq.SectionRegister(c.id), Epoch: c.epoch, Max: c.target}, c.state == Owned && c.target > c.confirmed
}

// Confirmed implements tenure.Owned.
func (r rising) Confirmed(s tenure.Step) {
	r.c.confirm(s.Epoch, s.Max)
	r.t.full.Store(false)
	r.t.stats.steps.Add(1)
}

// Unconfirmed implements tenure.Owned: the old ceiling stays until the same or a larger
// value is confirmed.
func (r rising) Unconfirmed(_ tenure.Step, out quorum.Outcome) {
	r.t.full.Store(errors.Is(out.Err, seq.ErrStoreFull))
}

// Lost implements tenure.Owned.
func (r rising) Lost(s tenure.Step, out quorum.Outcome) { r.t.lose(r.c, s.Epoch, out.Promised) }

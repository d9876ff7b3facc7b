package allocsvr

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// healthPause is how often Ready is asked for grpc.health.v1: a lost quorum shows within
// a lease of this node, and this comes on top.
const healthPause = 200 * time.Millisecond

// reportHealth makes grpc.health.v1 say what Ready says, under the empty name, and logs
// each change once; and whether there is a quorum, under rpc.QuorumHealth. Both start as
// NOT_SERVING; in leave they are shut down for good.
func (s *Server) reportHealth(ctx context.Context, p *assembled) error {
	tick := time.NewTicker(healthPause)
	defer tick.Stop()
	was := false
	for {
		p.health.SetServingStatus(rpc.QuorumHealth, rpc.Serving(p.alloc.quorum() == nil))
		err := p.Ready()
		if is := err == nil; is != was {
			was = is
			p.health.SetServingStatus("", rpc.Serving(is))
			if is {
				s.cfg.Logger.Info("ready")
			} else {
				s.cfg.Logger.Warn("not ready", "reason", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Ready is nil while this node has a route table, reaches a quorum, serves what it owns and
// has taken what the table gives to it and no other has; else the reason why not. Sections
// on their way from one node to another make neither of them less ready.
func (a *Alloc) Ready() error {
	if a.leaving.Load() {
		return seq.ErrShuttingDown
	}
	t := a.routes.Table()
	if t == nil {
		return fmt.Errorf("%w: no route table yet", seq.ErrNoRoute)
	}
	if n := a.leases.Connected(); int64(n) < a.needed.Load() {
		return a.leaseLoss()
	}
	have, lapsed, missing := a.standing(t)
	switch {
	case lapsed > 0:
		return fmt.Errorf("%w: %d of %d sections served", a.leaseLoss(), have-lapsed, have)
	case missing > 0:
		return fmt.Errorf("%w: %d of %d still to go", errTaking, missing, a.desired(t))
	}
	return nil
}

// standing counts the sections that this node owns, those of them of which the lease has
// ended, and those that the table gives to it and, for all that it knows, nobody has.
func (a *Alloc) standing(t *arbiter.Table) (have, lapsed, missing int) {
	now := a.clock.Now()
	for _, c := range a.cells {
		owner, _ := t.Owner(c.id)
		c.mu.Lock()
		switch {
		case c.state == owned:
			have++
			if !c.leased(now) {
				lapsed++
			}
		case c.state != sealed && c.successor == "" && owner.Name == a.name:
			missing++
		}
		c.mu.Unlock()
	}
	return have, lapsed, missing
}

package ownership

import (
	"context"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Stage says how far a bid had come when it failed.
type Stage uint8

const (
	// Looking: nothing was written.
	Looking Stage = iota
	// Promising: some stores may have promised the epoch.
	Promising
	// Confirming: W stores promised the epoch, and some may have the ceiling, or may get it
	// later. Nothing was handed out under the epoch, nor will be.
	Confirming
)

// A AcquireHandler is one register that is wanted, and what its user makes of the answers on the way.
// Acquire calls the methods in the order in which they stand here, and never two of them,
// of whichever bid of one call, at a time.
type AcquireHandler interface {
	// Register returns the register to acquire. If it is of a kind that exists on demand, the first promise
	// makes it.
	Register() seq.Register
	// Free is called when a look found that the stores would promise the register. It returns false to end
	// the bid.
	Free(found quorum.Outcome) bool
	// Begin is called when W stores have promised the epoch. Every number that was ever confirmed is at or
	// below found.Max. Begin returns the ceiling of the first step, or false to end the bid.
	Begin(epoch seq.Epoch, found quorum.Outcome) (ceiling uint64, ok bool)
	// Confirmed is called when W stores have the ceiling under the epoch. It records the epoch, so that its
	// loss is noticed, and reports whether a lease is wanted. It returns false if the bid was called off
	// meanwhile, or if the register is for another session.
	Confirmed(epoch seq.Epoch) bool
	// Failed ends the bid. The outcome has the reason, and the time after which a bid may succeed.
	Failed(at Stage, out quorum.Outcome)
}

// Gained is a register that was put under the session's lease.
type Gained[B AcquireHandler] struct {
	Bid   B
	Epoch seq.Epoch
	Hold  Lease

	ceiling uint64
}

// Acquire bids for registers: one look, one PREPARE and one STEP message a store for all of
// them. It returns those that were won and attached; the holds may not be ready yet. No two
// bids for one register may be under way at a time, and a register that is owned must not
// be served any more when a bid for it begins.
func Acquire[B AcquireHandler](ctx context.Context, h *Holder, bids []B) []Gained[B] {
	return attach(h, confirm(ctx, h, promise(ctx, h, look(ctx, h, bids))))
}

// look asks which sessions hold the registers.
func look[B AcquireHandler](ctx context.Context, h *Holder, bids []B) []Gained[B] {
	if len(bids) == 0 {
		return nil
	}
	regs := make([]seq.Register, len(bids))
	for i, b := range bids {
		regs[i] = b.Register()
	}
	free := make([]Gained[B], 0, len(bids))
	for i, out := range h.Registers.Probe(ctx, h.Session, regs) {
		if out.State != quorum.Won {
			bids[i].Failed(Looking, out)
		} else if bids[i].Free(out) {
			free = append(free, Gained[B]{Bid: bids[i], Epoch: seq.Epoch{Round: out.Promised.Round + 1, Session: h.Session}})
		}
	}
	return free
}

// promise asks for the epochs.
func promise[B AcquireHandler](ctx context.Context, h *Holder, free []Gained[B]) []Gained[B] {
	if len(free) == 0 {
		return nil
	}
	items := make([]quorum.PrepareItem, len(free))
	for i, g := range free {
		reg := g.Bid.Register()
		items[i] = quorum.PrepareItem{Register: reg, Round: g.Epoch.Round, Create: reg.OnDemand()}
	}
	promised := free[:0]
	for i, out := range h.Registers.Prepare(ctx, h.Session, items) {
		g := free[i]
		if out.State != quorum.Won {
			g.Bid.Failed(Promising, out)
			continue
		}
		var ok bool
		if g.ceiling, ok = g.Bid.Begin(g.Epoch, out); ok {
			promised = append(promised, g)
		}
	}
	return promised
}

// confirm writes the first ceilings.
func confirm[B AcquireHandler](ctx context.Context, h *Holder, promised []Gained[B]) []Gained[B] {
	if len(promised) == 0 {
		return nil
	}
	items := make([]quorum.StepItem, len(promised))
	for i, g := range promised {
		items[i] = quorum.StepItem{Register: g.Bid.Register(), Round: g.Epoch.Round, Max: g.ceiling}
	}
	won := promised[:0]
	for i, out := range h.Registers.Step(ctx, h.Session, items) {
		if out.State != quorum.Won {
			promised[i].Bid.Failed(Confirming, out)
			continue
		}
		won = append(won, promised[i])
	}
	return won
}

// attach asks for the leases of the bids that want one.
func attach[B AcquireHandler](h *Holder, won []Gained[B]) []Gained[B] {
	gained := won[:0]
	for _, g := range won {
		if g.Bid.Confirmed(g.Epoch) {
			g.Hold = h.Leases.Attach(g.Bid.Register(), g.Epoch.Round)
			gained = append(gained, g)
		}
	}
	return gained
}

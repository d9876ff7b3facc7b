// Package ownershiptest has stores and leases that a test scripts. It serves the tests of the packages that
// own registers.
package ownershiptest

import (
	"context"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Registers are ownership.Registers that answer what the test says, and refuse all else.
type Registers struct {
	OnProbe   func() quorum.Outcome // of every register
	OnStep    func(quorum.StepItem) quorum.Outcome
	OnRelease func()
	OnEnd     func()

	NoRelease error              // of every Release
	Released  []quorum.LeaseItem // by those that were not refused
}

// Probe implements ownership.Registers.
func (r *Registers) Probe(_ context.Context, _ seq.Session, regs []seq.Register) []quorum.Outcome {
	if r.OnProbe != nil {
		return slices.Repeat([]quorum.Outcome{r.OnProbe()}, len(regs))
	}
	return refusedAll(len(regs))
}

// Prepare implements ownership.Registers.
func (r *Registers) Prepare(_ context.Context, _ seq.Session, items []quorum.PrepareItem) []quorum.Outcome {
	return refusedAll(len(items))
}

func refusedAll(n int) []quorum.Outcome {
	return slices.Repeat([]quorum.Outcome{{State: quorum.Refused, Err: quorum.ErrHeld}}, n)
}

// Step implements ownership.Registers.
func (r *Registers) Step(_ context.Context, _ seq.Session, items []quorum.StepItem) []quorum.Outcome {
	out := make([]quorum.Outcome, len(items))
	for i, item := range items {
		out[i] = r.OnStep(item)
	}
	return out
}

// Release implements ownership.Registers.
func (r *Registers) Release(_ context.Context, _ seq.Session, items []quorum.LeaseItem, _ seq.Session) error {
	if r.OnRelease != nil {
		r.OnRelease()
	}
	if r.NoRelease == nil {
		r.Released = append(r.Released, items...)
	}
	return r.NoRelease
}

// Copies implements ownership.Registers.
func (r *Registers) Copies(_ context.Context, _ seq.Session, regs []seq.Register, _ []uint64) []quorum.Outcome {
	return refusedAll(len(regs))
}

// EndSession implements ownership.Registers.
func (r *Registers) EndSession(context.Context, seq.Secret) error {
	if r.OnEnd != nil {
		r.OnEnd()
	}
	return nil
}

// Lease is a lease that ends when the test says, and is never ready.
type Lease struct {
	End     time.Duration
	Dropped bool
}

// Until implements ownership.Lease.
func (h *Lease) Until() time.Duration { return h.End }

// Drop implements ownership.Lease.
func (h *Lease) Drop() { h.End, h.Dropped = 0, true }

// Ready implements ownership.Lease.
func (h *Lease) Ready() <-chan struct{} { return nil }

// Leases know of no other session; the stores all answer.
type Leases struct{}

// Attach implements ownership.Leases.
func (Leases) Attach(seq.Register, uint64) ownership.Lease { return &Lease{} }

// Kick does nothing.
func (Leases) Kick() {}

// Sessions lists none.
func (Leases) Sessions() []quorum.SessionView { return nil }

// RouteVersion returns 0, because there is no table.
func (Leases) RouteVersion() uint64 { return 0 }

// Connected returns 3, all stores.
func (Leases) Connected() int { return 3 }

package ownership

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Registers are the fenced registers that ownership rests on. quorum.Group over
// StoreSvr implements it; another engine may, if it passes tests/registers.
//
// Prepare and Step return only after W replicas have the write on disk, or with
// the reason why not; State Unknown means that it may have happened, and the same
// write may be repeated under the same epoch. Safe for concurrent use.
type Registers interface {
	Probe(ctx context.Context, session seq.Session, regs []seq.Register) []quorum.Outcome
	Prepare(ctx context.Context, session seq.Session, items []quorum.PrepareItem) []quorum.Outcome
	Step(ctx context.Context, session seq.Session, items []quorum.StepItem) []quorum.Outcome
	// Copies reads what W replicas that have promised {rounds[i], session} have of a section
	// of an exact space, as quorum.Group.Copies.
	Copies(ctx context.Context, session seq.Session, regs []seq.Register, rounds []uint64) []quorum.Outcome
	Release(ctx context.Context, session seq.Session, items []quorum.LeaseItem, to seq.Session) error
	EndSession(ctx context.Context, secret seq.Secret) error
}

// Lease is a register held under a lease.
type Lease interface {
	// Until is the moment on the node's clock up to which no other session can
	// have taken the register, except by preemption a section of a strict or exact space. It is 0 if the
	// lease is not backed by W replicas.
	Until() time.Duration
	// Drop gives the lease up; the hold is never valid again. Safe to repeat.
	Drop()
	// Ready is closed when W replicas have attached the register.
	Ready() <-chan struct{}
}

// Leases put registers under the session's lease. quorum.Leases has the same methods, except that Attach
// returns its own type.
type Leases interface {
	Attach(reg seq.Register, round uint64) Lease
}

// Holder is a session as one that holds registers. Safe for concurrent use.
type Holder struct {
	Session   seq.Session
	Registers Registers
	Leases    Leases
}

// Look tells what the stores have of a register, and whether they would let this session
// have it. Nothing is written.
func (h *Holder) Look(ctx context.Context, reg seq.Register) quorum.Outcome {
	return h.Registers.Probe(ctx, h.Session, []seq.Register{reg})[0]
}

// NotStanding is the seq.ErrNoLease of Standing. Met is the highest epoch that a store has promised.
type NotStanding struct{ Met seq.Epoch }

// Error implements error.
func (e *NotStanding) Error() string { return fmt.Sprintf("met epoch %v: %v", e.Met, seq.ErrNoLease) }

// Unwrap returns seq.ErrNoLease.
func (e *NotStanding) Unwrap() error { return seq.ErrNoLease }

// Standing asks W stores whether the epochs of the registers at the same indices are still promised. If an
// error is nil, a next owner can get the promise only after this call began. The error is a *NotStanding if
// another epoch was promised or the session would not be let in. Any other error means that the answer is
// unknown.
func (h *Holder) Standing(ctx context.Context, regs []seq.Register, epochs []seq.Epoch) []error {
	errs := make([]error, len(regs))
	for i, out := range h.Registers.Probe(ctx, h.Session, regs) {
		if out.State == quorum.Unknown {
			errs[i] = out.Err
		} else if out.State != quorum.Won || out.Promised != epochs[i] {
			errs[i] = &NotStanding{Met: out.Promised}
		}
	}
	return errs
}

// Release ends the leases at the stores now, and reserves the registers for session to, 0
// for none, for quorum.ReserveTime. The caller must have stopped serving them. An error
// says that the stores may not have heard of it; the leases then end by themselves.
func (h *Holder) Release(ctx context.Context, items []quorum.LeaseItem, to seq.Session) error {
	return h.Registers.Release(ctx, h.Session, items, to)
}

// End ends the session of the secret at the stores: all its leases end, and it gets none
// any more. The caller must have stopped serving everything. Errors are as of Release.
func (h *Holder) End(ctx context.Context, secret seq.Secret) error {
	return h.Registers.EndSession(ctx, secret)
}

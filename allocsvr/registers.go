package allocsvr

import (
	"context"
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
	Release(ctx context.Context, session seq.Session, items []quorum.LeaseItem, to seq.Session) error
	EndSession(ctx context.Context, secret seq.Secret) error
}

// Documents are compare-and-swap documents on the same replicas.
type Documents interface {
	LoadDocument(ctx context.Context, session seq.Session, reg seq.Register) (quorum.Document, error)
	SwapDocument(ctx context.Context, session seq.Session, reg seq.Register, old uint64, body []byte) (quorum.Document, error)
}

// Hold is a register held under a lease.
type Hold interface {
	// Until is the moment on the node's clock up to which no other session can
	// have taken the register; 0 if the lease is not backed by W replicas.
	Until() time.Duration
	// Drop gives the lease up; the hold is never valid again.
	Drop()
	// Ready is closed when W replicas have attached the register.
	Ready() <-chan struct{}
}

// Leases keeps this session alive at the replicas and tells of the others.
type Leases interface {
	Attach(reg seq.Register, round uint64) Hold
	Sessions() []quorum.SessionView
	RouteVersion() uint64
	// Kick renews at once.
	Kick()
	// Connected is how many replicas answered within the lease.
	Connected() int
}

// keeper makes quorum.Leases a Leases.
type keeper struct{ *quorum.Leases }

// Attach implements Leases.
func (k keeper) Attach(reg seq.Register, round uint64) Hold { return k.Leases.Attach(reg, round) }

package allocsvr

import (
	"context"

	"github.com/seqsvr/seqsvr/allocsvr/tenure"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Documents are compare-and-swap documents on the replicas of the registers.
type Documents interface {
	LoadDocument(ctx context.Context, session seq.Session, reg seq.Register) (quorum.Document, error)
	SwapDocument(ctx context.Context, session seq.Session, reg seq.Register, old uint64, body []byte) (quorum.Document, error)
}

// Leases keeps this session alive at the replicas and tells of the others.
type Leases interface {
	tenure.Leases
	Sessions() []quorum.SessionView
	RouteVersion() uint64
	// Kick renews at once.
	Kick()
	// Connected is how many replicas answered within the lease.
	Connected() int
}

// keeper makes quorum.Leases a Leases.
type keeper struct{ *quorum.Leases }

// Attach implements tenure.Leases.
func (k keeper) Attach(reg seq.Register, round uint64) tenure.Hold {
	return k.Leases.Attach(reg, round)
}

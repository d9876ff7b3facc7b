package allocsvr

import (
	"github.com/seqsvr/seqsvr/allocsvr/tenure"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

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

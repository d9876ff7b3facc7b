package allocsvr

import (
	"fmt"
	"strings"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// quorum returns nil while W stores have answered within the lease, and otherwise a seq.ErrNoQuorum that
// names the stores that have not.
//
// No lease of this node is valid then, and its knowledge of other owners is as old as its last renewal. So
// it returns this error for every request for a register, owned or not, and does not redirect. It cannot
// know whether the quorum is lost, or whether other nodes have a quorum and take over. The caller finds out
// by asking the other nodes (client.outage).
func (a *Alloc) quorum() error {
	n, needed := a.leases.Connected(), a.needed.Load()
	if int64(n) >= needed {
		return nil
	}
	var names []string
	if a.silent != nil {
		names = a.silent()
	}
	return quorumLoss(names, n, int(a.replicas.Load()), int(needed))
}

// quorumLoss is a seq.ErrNoQuorum that names the stores that are missing; n of all
// answered.
func quorumLoss(missing []string, n, all, needed int) error {
	if len(missing) == 0 {
		return fmt.Errorf("%w: %d of %d answered within the lease, %d needed", seq.ErrNoQuorum, n, all, needed)
	}
	return fmt.Errorf("%w: %d of %d answered within the lease, %d needed, missing %s", seq.ErrNoQuorum, n, all, needed, strings.Join(missing, ", "))
}

// nameStores keeps what the members call the stores, for people: each lease and message
// knows a store by its address.
func (n *Node) nameStores(members []quorum.Member, stores []quorum.NamedStore) {
	names := make(map[string]string, len(stores))
	for _, m := range members {
		for _, s := range stores {
			if m.UUID == s.UUID && m.Name != "" && m.Name != s.Name {
				names[s.Name] = m.Name + " at " + s.Name
			}
		}
	}
	n.stores.Store(&names)
}

// missingStores names the stores that did not answer within the lease.
func (n *Node) missingStores() []string {
	missing, names := n.leases.Missing(), *n.stores.Load()
	for i, name := range missing {
		if known := names[name]; known != "" {
			missing[i] = known
		}
	}
	return missing
}

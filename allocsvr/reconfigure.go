package allocsvr

import (
	"github.com/seqsvr/seqsvr/quorum"
)

// Reconfigure goes over to a newer member list, of which stores are the voters. Nothing
// is let go for it: sections, tags and worker ids stay, under the leases of the stores
// that stay. quorum.ErrBadConfig.
func (n *Node) Reconfigure(list quorum.MemberList, stores []quorum.NamedStore) error {
	ref := list.Ref(n.cluster, n.era)
	if err := n.group.Reconfigure(quorum.Config{Ref: ref, N: list.N(), R: list.R, W: list.W}, stores); err != nil {
		return err
	}
	if err := n.leases.Reconfigure(ref, list.W, stores); err != nil {
		return err
	}
	n.nameStores(list.Members, stores)
	n.alloc.replicas.Store(int64(list.N()))
	n.alloc.needed.Store(int64(list.W))
	n.refused.mu.Lock()
	n.refused.needed = list.W
	n.refused.mu.Unlock()
	return nil
}

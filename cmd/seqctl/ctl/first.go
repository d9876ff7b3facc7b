package ctl

import (
	"fmt"
	"strings"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// first is what to do first about a cluster that is not healthy, one step; empty for
// one that is. What keeps others from being well comes before what it causes.
func (s *survey) first() string {
	best := s.view()
	if best == nil {
		return "start the AllocSvr, or see why they do not answer: the last line of a daemon's log says why it ended"
	}
	names := s.storeNames()
	var away, distrusted []string
	for _, store := range best.GetStores() {
		name := names[store.GetAddr()]
		if name == "" {
			name = store.GetAddr()
		}
		switch {
		case strings.HasPrefix(store.GetState(), "distrusted"):
			distrusted = append(distrusted, name)
		case !store.GetReachable() || store.GetState() != "voting":
			away = append(away, name)
		}
	}
	n := len(best.GetStores())
	switch lost := len(away) + len(distrusted); {
	case lost*2 >= n && len(away) > 0:
		return fmt.Sprintf("start store %s with its disk; it and the majority of %d must vote before numbers are handed out again", away[0], n)
	case len(distrusted) > 0:
		return fmt.Sprintf("replace store %s: its disk is an old copy, so it votes no more (docs/operations.md#seqstoredistrusted)", distrusted[0])
	case len(away) > 0:
		return fmt.Sprintf("start store %s again, with its disk; the others bear no second loss out of %d", away[0], n)
	}
	return s.firstNode(best)
}

// firstNode is first where the stores are well.
func (s *survey) firstNode(best *pb.StatusReply) string {
	for _, node := range s.cluster.table.Nodes {
		reply := s.replies[node.Name]
		switch {
		case reply == nil:
			return fmt.Sprintf("start AllocSvr %s again; its sections go to others meanwhile, or for good with `seqctl drain %s`", node.Name, node.Name)
		case !reply.GetReady() && !node.Drained:
			return fmt.Sprintf("wait a lease, then look at AllocSvr %s: its network to the stores, and whether its machine stands still", node.Name)
		}
	}
	switch {
	case best.GetFrozen() != "":
		return "find out what the nodes that went have in common; if they are gone for good, `seqctl rebalance`"
	case best.GetSectionsUnowned() > 0:
		return "wait a few seconds for the standbys; then `seqctl leases` shows who still has the sections"
	}
	for _, m := range best.GetMembers() {
		if m.GetRole() == "router" && m.GetState() == "dead" {
			return fmt.Sprintf("start router %s again; callers use the others meanwhile", m.GetName())
		}
	}
	return ""
}

package survey

import (
	"fmt"
	"slices"
	"strings"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// requiredProtocol returns the protocol that the stores require of sessions. Zero means any.
func requiredProtocol(best *pb.StatusReply) (required uint32) {
	for _, st := range best.GetStores() {
		required = max(required, st.GetRequiredProtocol())
	}
	return required
}

// protocolTroubles are the nodes that the stores keep out for their protocol.
func protocolTroubles(best *pb.StatusReply) (all []trouble) {
	var named []string
	for _, st := range best.GetStores() {
		for _, who := range st.GetKeptOut() {
			if slices.Contains(named, who) {
				continue
			}
			named = append(named, who)
			all = append(all, trouble{protocolOld, false, fmt.Sprintf("%s, the cluster requires %d: it gets no lease", who, requiredProtocol(best)),
				"seqctl members", "install the build of the other nodes there (docs/operations.md#what-cannot-go-back)"})
		}
	}
	return all
}

// protocolNotes tells which protocol is required and what each node speaks, if one is required
// or the nodes differ.
func (s *Survey) protocolNotes() []string {
	best := s.View()
	required := requiredProtocol(best)
	speaks := map[uint32][]string{}
	for _, st := range best.GetStores() {
		if st.GetReachable() && st.GetEtcd() == nil {
			speaks[st.GetProtocol()] = append(speaks[st.GetProtocol()], s.storeName(st))
		}
	}
	for _, node := range s.Cluster.Table.Nodes {
		if reply := s.Replies[node.Name]; reply != nil {
			speaks[reply.GetProtocol()] = append(speaks[reply.GetProtocol()], node.Name)
		}
	}
	if required == 0 && len(speaks) < 2 {
		return nil
	}
	text := "any protocol is let in"
	if required > 0 {
		text = fmt.Sprintf("protocol %d is required", required)
	}
	var all []string
	for protocol, names := range speaks {
		slices.Sort(names)
		one := "2 or older at "
		if protocol > 0 {
			one = fmt.Sprintf("%d at ", protocol)
		}
		all = append(all, one+strings.Join(names, ", "))
	}
	slices.Sort(all)
	return []string{text + "; nodes speak " + strings.Join(all, "; ")}
}

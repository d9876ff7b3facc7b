package survey

import (
	"cmp"
	"fmt"
	"slices"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

const (
	// manyRefused is the number of refusals in the last minutes from which a note names them. A few happen
	// in every cluster.
	manyRefused = 10
	// maxRefusedNotes bounds the notes; the JSON has all.
	maxRefusedNotes = 5
)

// refusals returns the refusals of all nodes that answered, the most frequent first.
func (s *Survey) refusals() []Refusal {
	out := []Refusal{}
	add := func(role, node string, some []*pb.Refusal) {
		for _, one := range some {
			out = append(out, Refusal{role, node, one.GetReason(), one.GetAddress(), one.GetCount()})
		}
	}
	for _, node := range s.Cluster.Table.Nodes {
		add("alloc", node.Name, s.Replies[node.Name].GetRefused())
	}
	for _, store := range s.View().GetStores() {
		add("store", s.storeName(store), store.GetRefused())
	}
	slices.SortStableFunc(out, func(a, b Refusal) int { return cmp.Compare(b.Count, a.Count) })
	return out
}

// refusalNotes tell of the most frequent refusals.
func (s *Survey) refusalNotes() (out []string) {
	for i, one := range s.refusals() {
		if one.Count < manyRefused || i == maxRefusedNotes {
			break
		}
		out = append(out, fmt.Sprintf("%s %s refused %d times in the last minutes: %s, from %s (docs/operations.md, SeqMisuseRefused)", one.Role, one.Node, one.Count, one.Reason, one.Address))
	}
	return out
}

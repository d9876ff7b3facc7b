package survey

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

const (
	// manyRefused is the number of refusals in the last minutes from which a note names them. A few happen
	// in every cluster.
	manyRefused = 10
	// maxRefusedNotes bounds the notes; the JSON has all.
	maxRefusedNotes = 5
)

// refusals returns the refusals of all nodes of the Set at hand that answered, the most frequent first.
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
	for _, router := range s.liveRouters() {
		add("router", router.GetName(), s.routers[router.GetName()].GetRefused())
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

// liveRouters returns the routers that the membership knows and takes for alive.
func (s *Survey) liveRouters() (out []*pb.MemberStatus) {
	for _, m := range s.View().GetMembers() {
		if m.GetRole() == "router" && m.GetState() == "alive" {
			out = append(out, m)
		}
	}
	return out
}

// Routers returns what the routers told that answered, by name.
func (s *Survey) Routers() map[string]*pb.RouterStatusReply { return s.routers }

// AskRouters asks all live routers of all Sets at once what they know of themselves, each for at most patience. A router
// that gives no answer, such as an older build, is left out.
func (s *Survey) AskRouters(ctx context.Context, conns *Conns, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var (
		mu     sync.Mutex // guards told
		told   = map[string]*pb.RouterStatusReply{}
		asking sync.WaitGroup
	)
	routers := map[string]*pb.MemberStatus{}
	for _, of := range s.Each() {
		for _, router := range of.liveRouters() {
			routers[router.GetName()] = router
		}
	}
	for _, router := range routers {
		asking.Go(func() {
			conn, err := conns.To(router.GetAddr())
			if err != nil {
				return
			}
			reply, err := pb.NewRouterClient(conn).Status(ctx, &pb.RouterStatusRequest{})
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			told[router.GetName()] = reply
		})
	}
	asking.Wait()
	s.routers = told
}

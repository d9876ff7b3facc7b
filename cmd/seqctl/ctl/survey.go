package ctl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Health of a cluster, in one word.
type health string

const (
	healthy  health = "healthy"  // all of it serves, all nodes are there
	degraded health = "degraded" // all of it serves, but something is missing
	failed   health = "failed"   // a part of the UIDs, or all, is not served
)

// survey is every AllocSvr's own word on itself and on the cluster.
type survey struct {
	cluster *cluster
	replies map[string]*pb.StatusReply // by node name; only those that answered
	errs    map[string]error           // of the others
}

// takeSurvey asks all AllocSvr of the route table at once.
func takeSurvey(ctx context.Context, o *Options) (*survey, error) {
	c, err := askRoutes(ctx, o.Addr, o.Dial()...)
	if err != nil {
		return nil, err
	}
	s := &survey{cluster: c, replies: map[string]*pb.StatusReply{}, errs: map[string]error{}}
	var mu sync.Mutex // guards s.replies and s.errs
	var wg sync.WaitGroup
	for _, node := range c.table.Nodes {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, statusAttempt)
			defer cancel()
			var reply *pb.StatusReply
			err := onNode(ctx, node.Addr, o.Dial(), func(ctx context.Context, admin pb.AdminClient) (err error) {
				reply, err = admin.Status(ctx, &pb.StatusRequest{})
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.errs[node.Name] = err
				return
			}
			s.replies[node.Name] = reply
		})
	}
	wg.Wait()
	return s, nil
}

// view is the answer that knows most: of the AllocSvr with the newest route table;
// nil when none answered.
func (s *survey) view() *pb.StatusReply {
	var best *pb.StatusReply
	for _, node := range s.cluster.table.Nodes {
		if r := s.replies[node.Name]; r != nil && (best == nil || r.GetRouteVersion() > best.GetRouteVersion()) {
			best = r
		}
	}
	return best
}

// judge says how well the cluster is, and every reason why it is not healthy.
func (s *survey) judge() (health, []string) {
	best := s.view()
	if best == nil {
		return failed, []string{fmt.Sprintf("none of %d AllocSvr answers", len(s.cluster.table.Nodes))}
	}
	var broken, missing []string
	if n := best.GetSectionsUnowned(); n > 0 {
		broken = append(broken, fmt.Sprintf("%d of %d sections have no owner", n, best.GetSections()))
	}
	names := s.storeNames()
	away := 0
	for _, store := range best.GetStores() {
		name := names[store.GetAddr()]
		if name == "" {
			name = store.GetAddr()
		}
		switch {
		case !store.GetReachable():
			away++
			missing = append(missing, fmt.Sprintf("store %s is not reachable", name))
		case store.GetState() != "voting":
			away++
			missing = append(missing, fmt.Sprintf("store %s does not vote: %s", name, store.GetState()))
		}
	}
	if n := len(best.GetStores()); away > 0 && away*2 >= n {
		broken = append(broken, fmt.Sprintf("%d of %d stores are away: no quorum", away, n))
	}
	for _, node := range s.cluster.table.Nodes {
		missing = append(missing, s.judgeNode(node)...)
	}
	for _, m := range best.GetMembers() { // of stores and allocators there is better knowledge
		if m.GetState() == "dead" && m.GetRole() == "router" {
			missing = append(missing, fmt.Sprintf("router %s is dead since %s", m.GetName(), stamp(m.GetSinceUnixMs())))
		}
	}
	if why := best.GetFrozen(); why != "" {
		missing = append(missing, "the arbiter is frozen: "+why)
	}
	switch {
	case len(broken) > 0:
		return failed, append(broken, missing...)
	case len(missing) > 0:
		return degraded, missing
	}
	return healthy, []string{}
}

// storeNames are the names of the stores by address, as far as the membership knows.
func (s *survey) storeNames() map[string]string {
	names := map[string]string{}
	for _, m := range s.view().GetMembers() {
		if m.GetRole() == "store" {
			names[m.GetAddr()] = m.GetName()
		}
	}
	return names
}

func (s *survey) judgeNode(node seq.Node) []string {
	reply := s.replies[node.Name]
	switch {
	case reply == nil:
		return []string{fmt.Sprintf("alloc %s does not answer", node.Name)}
	case !reply.GetReady() && !node.Drained:
		return []string{fmt.Sprintf("alloc %s is not ready: %s", node.Name, reply.GetReason())}
	}
	return nil
}

// stamp is a moment of a reply in local time; empty for none.
func stamp(unixMS int64) string {
	if unixMS == 0 {
		return ""
	}
	return time.UnixMilli(unixMS).Format(time.DateTime)
}

// sessionText is a session as people see it; empty for none.
func sessionText(session uint64) string {
	if session == 0 {
		return ""
	}
	return seq.Session(session).String()
}

// sortedBy is a sorted copy.
func sortedBy[T any](list []T, key func(T) string) []T {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	return list
}

package ctl

import (
	"context"
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

	idTroubles []trouble // of snowflake namespaces; nil until askIDs
}

// takeSurvey asks all AllocSvr of the route table at once.
func takeSurvey(ctx context.Context, o *Options) (*survey, error) {
	c, err := askRoutes(ctx, o, o.Addr)
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
			reply, err := onNode(ctx, o, node.Addr, pb.AdminClient.Status, &pb.StatusRequest{})
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

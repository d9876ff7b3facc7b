package survey

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Patience bounds the wait for one node, which asks the stores for its status. So one node that hangs does
// not take the whole time of the command.
const Patience = 4 * time.Second

// Cluster is the cluster as one router or AllocSvr describes it.
type Cluster struct {
	ID      string
	Mapping seq.Mapping
	Table   *seq.RouteTable
	Set     string   // the Set described; empty if the cluster is alone
	Sets    sets.Map // as the node knows it; zero if the cluster is alone
	// Incarnation is the life of the cluster; not known if the node does not tell it.
	Incarnation seq.Incarnation
}

// Addrs returns the addresses of the AllocSvr.
func (c *Cluster) Addrs() (out []string) {
	for _, n := range c.Table.Nodes {
		out = append(out, n.Addr)
	}
	return out
}

// Routes gets the mapping and the route table from a router or AllocSvr.
// seq.ErrNoRoute: it has none yet.
func Routes(ctx context.Context, conns *Conns, addr string) (*Cluster, error) {
	conn, err := conns.To(addr)
	if err != nil {
		return nil, err
	}
	reply, err := pb.NewSequenceClient(conn).Routes(ctx, &pb.RoutesRequest{})
	if err != nil {
		return nil, err
	}
	mapping, err := rpc.MappingFromProto(reply.GetMapping())
	if err != nil {
		return nil, fmt.Errorf("routes of %s: %w", addr, err)
	}
	table, err := rpc.RoutesFromProto(reply.GetRoutes(), mapping)
	if err != nil {
		return nil, fmt.Errorf("routes of %s: %w", addr, err)
	}
	if table == nil {
		return nil, fmt.Errorf("routes of %s: %w", addr, seq.ErrNoRoute)
	}
	all, err := rpc.SetMapFromProto(reply.GetSets())
	if err != nil {
		return nil, fmt.Errorf("routes of %s: %w", addr, err)
	}
	return &Cluster{ID: reply.GetClusterId(), Mapping: mapping, Table: table, Set: reply.GetSet(), Sets: all, Incarnation: rpc.IncarnationFromProto(reply.GetIncarnation())}, nil
}

// Survey is every AllocSvr's own word on itself and on the cluster.
type Survey struct {
	Cluster *Cluster
	Replies map[string]*pb.StatusReply // by node name; only those that answered
	Errs    map[string]error           // of the others

	routers    map[string]*pb.RouterStatusReply // by name; nil until AskRouters
	idTroubles []trouble                        // of snowflake namespaces; nil until AskIDs
	sets       []*Survey                        // of all Sets in the order of the map, s among them; nil before Whole, or if the cluster is alone
}

// Each returns the surveys of all Sets in the order of the map, or s itself if the cluster is alone.
func (s *Survey) Each() []*Survey {
	if len(s.sets) == 0 {
		return []*Survey{s}
	}
	return s.sets
}

// newSurvey has no answers yet.
func newSurvey(c *Cluster) *Survey {
	return &Survey{Cluster: c, Replies: map[string]*pb.StatusReply{}, Errs: map[string]error{}}
}

// answer is what a node said.
type answer struct {
	node  seq.Node
	reply *pb.StatusReply
	err   error
}

func ask(ctx context.Context, conns *Conns, node seq.Node, brief bool, to chan<- answer) {
	conn, err := conns.To(node.Addr)
	var reply *pb.StatusReply
	if err == nil {
		reply, err = pb.NewAdminClient(conn).Status(ctx, &pb.StatusRequest{Brief: brief})
	}
	to <- answer{node, reply, err}
}

// add notes an answer.
func (s *Survey) add(a answer) {
	if a.err != nil {
		s.Errs[a.node.Name] = a.err
		return
	}
	s.Replies[a.node.Name] = a.reply
}

// Take asks all AllocSvr of the route table at once, each for at most patience.
func Take(ctx context.Context, c *Cluster, conns *Conns, patience time.Duration) *Survey {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, answers := newSurvey(c), make(chan answer, len(c.Table.Nodes))
	for _, node := range c.Table.Nodes {
		go ask(ctx, conns, node, false, answers)
	}
	for range c.Table.Nodes {
		s.add(<-answers)
	}
	return s
}

// Glance is Take at the cost of one node: what the stores have is asked of the AllocSvr that
// answers first, or of another if that one fails, and of all what they know by themselves.
func Glance(ctx context.Context, c *Cluster, conns *Conns, patience time.Duration) *Survey {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, brief, whole := newSurvey(c), make(chan answer, len(c.Table.Nodes)), make(chan answer, 1)
	for _, node := range c.Table.Nodes {
		go ask(ctx, conns, node, true, brief)
	}
	var next []seq.Node // that answered, and were not asked for the whole
	asking := false
	for left := len(c.Table.Nodes); left > 0 || asking; {
		select {
		case a := <-brief:
			left--
			if s.add(a); a.err == nil {
				next = append(next, a.node)
			}
		case a := <-whole:
			if asking = false; a.err == nil {
				s.add(a)
			}
		}
		if known := s.View(); !asking && len(next) > 0 && known.GetBrief() {
			asking = true
			go ask(ctx, conns, next[0], false, whole)
			next = next[1:]
		}
	}
	return s
}

// View is the answer that knows most: of the AllocSvr with the newest route table, one that
// is not brief if there is such a one; nil when none answered.
func (s *Survey) View() *pb.StatusReply {
	var best *pb.StatusReply
	for _, node := range s.Cluster.Table.Nodes {
		r := s.Replies[node.Name]
		switch {
		case r == nil:
		case best == nil, best.GetBrief() && !r.GetBrief(),
			best.GetBrief() == r.GetBrief() && r.GetRouteVersion() > best.GetRouteVersion():
			best = r
		}
	}
	return best
}

// Answered is the address of an AllocSvr that answered; "" if none did.
func (s *Survey) Answered() string {
	for _, node := range s.Cluster.Table.Nodes {
		if s.Replies[node.Name] != nil {
			return node.Addr
		}
	}
	return ""
}

// storeNames are the names of the stores by address, as far as the membership knows.
func (s *Survey) storeNames() map[string]string {
	names := map[string]string{}
	for _, m := range s.View().GetMembers() {
		if m.GetRole() == "store" {
			names[m.GetAddr()] = m.GetName()
		}
	}
	return names
}

// Stamp is a moment of a reply in local time; empty for none.
func Stamp(unixMS int64) string {
	if unixMS == 0 {
		return ""
	}
	return time.UnixMilli(unixMS).Format(time.DateTime)
}

// SessionText is a session as people see it; empty for none.
func SessionText(session uint64) string {
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

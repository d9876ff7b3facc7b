package lab

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Pauses of the survey. The moments in a status are exact however seldom it is asked for.
const (
	surveyEvery   = 400 * time.Millisecond
	surveyTimeout = 5 * time.Second
	routesTimeout = time.Second
)

// survey asks the AllocSvr what they know of the cluster.
type survey struct {
	allocs   []localcluster.Node
	space    string                      // of the load
	conns    map[string]*grpc.ClientConn // by name of the node
	timeline *timeline

	mu    sync.Mutex // guards the fields below
	state map[string]string
	names map[uint64]string // session -> node
	hurt  string            // the latest victim, whose own view is of less worth
}

func newSurvey(allocs []localcluster.Node, space string, t *timeline) (*survey, error) {
	s := &survey{allocs: allocs, space: space, conns: map[string]*grpc.ClientConn{}, timeline: t, state: map[string]string{}, names: map[uint64]string{}}
	for _, n := range allocs {
		conn, err := rpc.Dial(n.Addr)
		if err != nil {
			s.close()
			return nil, err
		}
		s.conns[n.Name] = conn
	}
	return s, nil
}

func (s *survey) close() {
	for _, conn := range s.conns {
		_ = conn.Close()
	}
}

// status is one node's view. A brief one leaves out what the node would have to read from the stores: every
// section.
func (s *survey) status(ctx context.Context, node string, brief bool) (*pb.StatusReply, error) {
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	reply, err := pb.NewAdminClient(s.conns[node]).Status(ctx, &pb.StatusRequest{Brief: brief})
	if err == nil {
		s.note(reply)
	}
	return reply, err
}

// note keeps the names of sessions, and puts changes of the membership into the
// timeline at the moment that the view gives for them.
func (s *survey) note(reply *pb.StatusReply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := reply.GetNode() != s.hurt
	s.names[reply.GetSession()] = reply.GetNode()
	for _, m := range reply.GetMembers() {
		if m.GetSession() != 0 {
			s.names[m.GetSession()] = m.GetName()
		}
		if !seen {
			continue
		}
		old := s.state[m.GetName()]
		s.state[m.GetName()] = m.GetState()
		if old == "" || old == m.GetState() {
			continue
		}
		at := s.timeline.clock.Now()
		if m.GetSinceUnixMs() > 0 {
			at = s.timeline.unix(m.GetSinceUnixMs())
		}
		event := eventMember
		if m.GetState() == "dead" {
			event = eventSuspected
		}
		s.timeline.add(at, event, m.GetName(), "%s by the view of %s", m.GetState(), reply.GetNode())
	}
}

// name of a session.
func (s *survey) name(session uint64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name := s.names[session]; name != "" {
		return name
	}
	return "session " + seq.Session(session).String()
}

// avoid makes follow look through the eyes of another node than the victim.
func (s *survey) avoid(victim string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurt = victim
}

func (s *survey) victim() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hurt
}

// follow looks at the membership until ctx ends, through the first node that answers
// and is no victim.
func (s *survey) follow(ctx context.Context) {
	for ctx.Err() == nil {
		for _, n := range s.allocs {
			if n.Name == s.victim() {
				continue
			}
			if _, err := s.status(ctx, n.Name, true); err == nil || ctx.Err() != nil {
				break
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(surveyEvery):
		}
	}
}

// events are the decisions of the log since the fault, from the first node that tells. quiet leaves
// out the steps of moves between Sets.
func (s *survey) events(ctx context.Context, quiet bool) {
	for _, n := range s.allocs {
		call, cancel := context.WithTimeout(ctx, surveyTimeout)
		reply, err := pb.NewAdminClient(s.conns[n.Name]).Events(call, &pb.EventsRequest{Limit: 200})
		cancel()
		if err != nil {
			continue
		}
		began := s.timeline.began()
		for _, e := range reply.GetEvents() {
			if quiet && (e.GetKind() == "sets" || e.GetKind() == "change") {
				continue
			}
			if at := s.timeline.unix(e.GetUnixMs()); at >= began {
				s.timeline.add(at, eventTable, e.GetSubject(), "%s, by %s: %s", e.GetKind(), e.GetNode(), e.GetReason())
			}
		}
		return
	}
}

// table is the newest route table that any node has, of the root Set, and the space of the load.
func (s *survey) table(ctx context.Context) (*seq.RouteTable, *seq.Space, error) {
	var best *seq.RouteTable
	var mapping seq.Mapping
	err := fmt.Errorf("routes: %w", seq.ErrNoRoute)
	for _, n := range ofSet(s.allocs, sets.RootName) {
		call, cancel := context.WithTimeout(ctx, routesTimeout)
		reply, failed := pb.NewSequenceClient(s.conns[n.Name]).Routes(call, &pb.RoutesRequest{})
		cancel()
		if failed != nil {
			err = failed
			continue
		}
		m, failed := rpc.MappingFromProto(reply.GetMapping())
		if failed != nil {
			return nil, nil, failed
		}
		t, failed := rpc.RoutesFromProto(reply.GetRoutes(), m)
		if failed != nil {
			return nil, nil, failed
		}
		if t != nil && (best == nil || t.Version > best.Version) {
			best, mapping = t, m
		}
	}
	if best == nil {
		return nil, nil, err
	}
	space, err := mapping.Space(s.space)
	return best, space, err
}

// healthy is nil if every node answers, serves and counts all others as alive, and by the first node no
// section is without an owner; else ErrUnhealthy with the first thing that is wrong.
func (s *survey) healthy(ctx context.Context) error {
	for i, n := range s.allocs {
		r, err := s.status(ctx, n.Name, i > 0)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %s: %w", ErrUnhealthy, n.Name, err)
		case !r.GetReady():
			return fmt.Errorf("%w: %s is not ready: %s", ErrUnhealthy, n.Name, r.GetReason())
		case r.GetSectionsUnowned() > 0:
			return fmt.Errorf("%w: %d of %d sections have no owner", ErrUnhealthy, r.GetSectionsUnowned(), r.GetSections())
		case r.GetFrozen() != "":
			return fmt.Errorf("%w: %w: %s", ErrUnhealthy, errFrozen, r.GetFrozen())
		}
		for _, st := range r.GetStores() {
			if !st.GetReachable() || st.GetState() != "voting" {
				return fmt.Errorf("%w: store %s: reachable %v, %s", ErrUnhealthy, st.GetAddr(), st.GetReachable(), st.GetState())
			}
		}
		for _, m := range r.GetMembers() {
			if m.GetState() == "dead" {
				return fmt.Errorf("%w: %s %s is dead", ErrUnhealthy, m.GetRole(), m.GetName())
			}
			if m.GetDrained() {
				return fmt.Errorf("%w: %s is drained", ErrUnhealthy, m.GetName())
			}
		}
	}
	return nil
}

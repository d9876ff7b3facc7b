package drill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/localcluster"
	"github.com/seqsvr/seqsvr/internal/netlab"
	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// recoverPatience bounds how long a drill waits for the cluster to serve everything.
const recoverPatience = 45 * time.Second

// scene is one drill under way.
type scene struct {
	*target
	node     string        // that was asked for; empty: the drill chooses
	pause    time.Duration // that was asked for; 0: the drill chooses
	lease    time.Duration
	load     *load
	timeline *timeline
	survey   *survey
	stores   *stores
	network  *netlab.Network // nil outside of namespaces

	watches sync.WaitGroup
	faults  []fault  // in order
	mends   []string // killed nodes, to be started again in a cluster of others
	undrain string   // a drained node, to be given back; empty: none
}

// fault is one thing that was done to the cluster.
type fault struct {
	at   time.Duration // when it was complete
	from time.Duration // when it began
	uids func(seq.UID) bool
}

// role lists the nodes of a role.
func (s *scene) role(role localcluster.Role) []localcluster.Node {
	return slices.DeleteFunc(slices.Clone(s.nodes), func(n localcluster.Node) bool { return n.Role != role })
}

// choose is the node asked for, or the preferred one.
func (s *scene) choose(role localcluster.Role, preferred func() string) (string, error) {
	if s.node == "" {
		return preferred(), nil
	}
	for _, n := range s.role(role) {
		if n.Name == s.node {
			return n.Name, nil
		}
	}
	return "", unknownNode(s.node, role, s.role(role))
}

func unknownNode(name string, role localcluster.Role, nodes []localcluster.Node) error {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return fmt.Errorf("%w: %q, expected a node of role %s: %v", seq.ErrUnknownNode, name, role, names)
}

// first is the first node of a role.
func (s *scene) first(role localcluster.Role) func() string {
	return func() string { return s.role(role)[0].Name }
}

// busiest is the AllocSvr with most sections: its loss is felt most.
func (s *scene) busiest(t *seq.RouteTable) func() string {
	return func() string {
		best, most := "", -1
		for _, n := range s.role(localcluster.RoleAlloc) {
			if i := t.Index(n.Name); i >= 0 {
				if owned := len(ownedBy(t, i)); owned > most {
					best, most = n.Name, owned
				}
			}
		}
		return best
	}
}

func ownedBy(t *seq.RouteTable, node int) (ids []seq.SectionID) {
	for id, p := range t.Sections {
		if int(p.Owner) == node {
			ids = append(ids, seq.SectionID(id))
		}
	}
	return ids
}

// alloc chooses an AllocSvr.
func (s *scene) alloc(ctx context.Context) (string, error) {
	t, _, err := s.survey.routes(ctx)
	if err != nil {
		return "", err
	}
	return s.choose(localcluster.RoleAlloc, s.busiest(t))
}

// hurtAlloc does something to an AllocSvr while its leases are watched.
func (s *scene) hurtAlloc(ctx context.Context, name, what string, do func() error) error {
	t, mapping, err := s.survey.routes(ctx)
	if err != nil {
		return err
	}
	i := t.Index(name)
	if i < 0 {
		return fmt.Errorf("%w: %s is not in the route table", ErrUnhealthy, name)
	}
	space, err := mapping.Space("")
	if err != nil {
		return err
	}
	s.watchLeases(ctx, t, i)
	s.survey.avoid(name)
	theirs := func(uid seq.UID) bool { owner, _ := t.Owner(space.SectionOf(uid)); return owner.Name == name }
	return s.hurt(name, what, theirs, do)
}

// hurt does one fault and notes it.
func (s *scene) hurt(subject, what string, uids func(seq.UID) bool, do func() error) error {
	from := s.timeline.clock.Now()
	s.timeline.add(from, eventFault, subject, "%s", what)
	if err := do(); err != nil {
		return fmt.Errorf("%s %s: %w", what, subject, err)
	}
	s.faults = append(s.faults, fault{at: s.timeline.clock.Now(), from: from, uids: uids})
	return nil
}

// watchLeases follows one section of the node for each of its first standbys.
func (s *scene) watchLeases(ctx context.Context, t *seq.RouteTable, node int) {
	w := &watch{stores: s.stores, timeline: s.timeline, node: t.Nodes[node].Name, session: uint64(t.Nodes[node].Session),
		names: s.survey.name, since: s.timeline.clock.Now()}
	seen := map[int16]bool{}
	for _, id := range ownedBy(t, node) {
		if standby := t.Sections[id].Standby; !seen[standby] {
			seen[standby] = true
			w.sections = append(w.sections, id)
		}
	}
	if len(w.sections) > 0 {
		s.watches.Go(func() { w.follow(ctx) })
	}
}

// start starts a node again that the drill has ended.
func (s *scene) start(name string) error {
	s.timeline.now(eventMend, name, "started")
	if err := s.process(name).Start(); err != nil && !errors.Is(err, localcluster.ErrRunning) {
		return err
	}
	return nil
}

// rest lets time go by.
func (s *scene) rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// served waits until AllocSvr other than away are ready and every section has an owner.
func (s *scene) served(ctx context.Context, away ...string) error {
	wait, cancel := context.WithTimeout(ctx, recoverPatience)
	defer cancel()
	for {
		err := s.unserved(wait, away)
		if err == nil {
			return nil
		}
		if wait.Err() != nil {
			return fmt.Errorf("%w: %w", ErrNotRecovered, err)
		}
		if err := s.rest(wait, surveyEvery); ctx.Err() != nil {
			return err
		}
	}
}

func (s *scene) unserved(ctx context.Context, away []string) error {
	for _, n := range s.role(localcluster.RoleAlloc) {
		if slices.Contains(away, n.Name) {
			continue
		}
		r, err := s.survey.status(ctx, n.Name)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", n.Name, err)
		case !r.GetReady():
			return fmt.Errorf("%s is not ready: %s", n.Name, r.GetReason())
		case r.GetSectionsUnowned() > 0:
			return fmt.Errorf("%d of %d sections have no owner", r.GetSectionsUnowned(), r.GetSections())
		}
	}
	return nil
}

// calm waits until a store votes and its grace is over, so that the next one may be
// restarted.
func (s *scene) calm(ctx context.Context, store string) error {
	wait, cancel := context.WithTimeout(ctx, recoverPatience)
	defer cancel()
	conn, err := rpc.Dial(s.addr(store))
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		reply, err := pb.NewStoreClient(conn).Describe(wait, &pb.DescribeRequest{})
		if err == nil && reply.GetVoting() && reply.GetGraceRemainingUs() == 0 {
			return nil
		}
		if wait.Err() != nil {
			return fmt.Errorf("%w: %s: %s, grace %d µs: %w", ErrNotRecovered, store, reply.GetState(), reply.GetGraceRemainingUs(), err)
		}
		if err := s.rest(wait, 20*time.Millisecond); ctx.Err() != nil {
			return err
		}
	}
}

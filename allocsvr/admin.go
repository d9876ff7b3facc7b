package allocsvr

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/placement"
	"github.com/seqsvr/seqsvr/internal/version"
	"github.com/seqsvr/seqsvr/membership"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// adminServer serves operators: reading, and changes of the route table.
type adminServer struct {
	pb.UnimplementedAdminServer
	a      *Alloc
	ready  func() error
	view   *membership.View // nil without gossip
	stores func(context.Context) []*pb.StoreStatus
	prefix func(context.Context) (map[seq.Register]quorum.Outcome, error)
	era    seq.Era
	devLog string // as Config has it
}

// Status implements pb.AdminServer.
func (s adminServer) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusReply, error) {
	a := s.a
	t := a.routes.table()
	reply := &pb.StatusReply{
		ClusterId: a.cluster, Era: uint64(s.era), Node: a.name, Session: uint64(a.session), RouteVersion: t.version(),
		Sections: uint32(len(a.cells)), LeaseUs: uint64(a.lease / time.Microsecond), Version: version.Get().Version,
		Numbers: a.stats.total(), Steps: a.stats.steps.Load(), Takeovers: a.stats.takeovers.Load(),
		Handoffs: a.stats.handoffs.Load(), Nacks: a.stats.nacks.Load(), Stores: s.stores(ctx), DevLog: s.devLog,
	}
	serving, inMemory := a.census()
	reply.SectionsOwned, reply.Counters = uint32(serving), uint64(inMemory)
	if t != nil {
		reply.Frozen = t.Frozen
	}
	err := s.ready()
	if reply.Ready = err == nil; err != nil {
		reply.Reason = err.Error()
	}
	if owners, err := s.owners(ctx); err == nil {
		reply.Arbiter = owners.arbiter
		reply.SectionsUnowned, reply.SectionsMoving = uint32(owners.unowned), uint32(owners.moving)
		a.endings(owners.regs, reply)
		reply.Members = s.members(t, owners)
	} else {
		reply.Members = s.members(t, ownership{})
	}
	return reply, nil
}

// census counts the sections that are served at this moment and the UIDs in memory.
func (a *Alloc) census() (serving, uids int) {
	now := a.clock.Now()
	for _, c := range a.cells {
		c.mu.Lock()
		if c.state == owned {
			uids += c.table.Len()
			if c.leased(now) {
				serving++
			}
		}
		c.mu.Unlock()
	}
	return serving, uids
}

// desired counts the sections that the table gives to this node.
func (a *Alloc) desired(t *table) (n int) {
	if t == nil {
		return 0
	}
	for id := range t.Sections {
		if owner, ok := t.Owner(seq.SectionID(id)); ok && owner.Name == a.name {
			n++
		}
	}
	return n
}

// ownership is who owns what by the stores.
type ownership struct {
	regs    map[seq.Register]quorum.Outcome
	names   map[seq.Session]string
	count   map[seq.Session]int
	left    map[seq.Session]time.Duration
	arbiter string
	unowned int // by no live session
	moving  int // held by none, but the last one that had or has asked for it lives: a hand-over
}

// owners reads all sections and the arbiter's register at a quorum of stores.
func (s adminServer) owners(ctx context.Context) (ownership, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	regs, err := s.prefix(ctx)
	if err != nil {
		return ownership{}, err
	}
	now := s.a.clock.Now()
	o := ownership{regs: regs, names: map[seq.Session]string{s.a.session: s.a.name},
		count: map[seq.Session]int{}, left: map[seq.Session]time.Duration{}}
	for _, v := range s.a.leases.Sessions() {
		o.names[v.Session] = v.Name
		if !v.Dead {
			o.left[v.Session] = max(v.FreeAt-now, 0)
		}
	}
	for reg, out := range regs {
		if reg.Kind() != seq.KindSection {
			continue
		}
		if out.Holder == 0 {
			if o.left[out.Promised.Session] > 0 {
				o.moving++
			} else {
				o.unowned++
			}
			continue
		}
		o.count[out.Holder]++
	}
	found := s.a.holder.Look(ctx, seq.SeatRegister)
	o.arbiter = o.names[found.Holder]
	if found.Holder == 0 {
		o.arbiter = o.names[found.Accepted.Session]
	}
	return o, nil
}

// members is the membership view beside the stores' sessions.
func (s adminServer) members(t *table, o ownership) []*pb.MemberStatus {
	byName := map[string]*pb.MemberStatus{}
	var out []*pb.MemberStatus
	add := func(m *pb.MemberStatus) *pb.MemberStatus {
		if old := byName[m.Role+"/"+m.Name]; old != nil {
			return old
		}
		byName[m.Role+"/"+m.Name] = m
		out = append(out, m)
		return m
	}
	if s.view != nil {
		for _, m := range s.view.Members() {
			add(&pb.MemberStatus{Name: m.Meta.Name, Role: string(m.Meta.Role), State: m.State.String(),
				SinceUnixMs: m.Since.UnixMilli(), Addr: m.Meta.Addr, Session: m.Meta.Session,
				Protocol: uint32(m.Meta.Protocol), RouteVersion: m.Meta.TableVersion, LeaseLeftMs: -1})
		}
	}
	for session, left := range o.left {
		m := add(&pb.MemberStatus{Name: o.names[session], Role: string(membership.RoleAlloc), State: "alive", Session: uint64(session)})
		if m.Session == uint64(session) {
			m.LeaseLeftMs, m.SectionsOwned = left.Milliseconds(), uint32(o.count[session])
		}
	}
	if t != nil {
		desired := make([]uint32, len(t.Nodes))
		for _, p := range t.Sections {
			if p.Owner >= 0 {
				desired[p.Owner]++
			}
		}
		for i, n := range t.Nodes {
			m := add(&pb.MemberStatus{Name: n.Name, Role: string(membership.RoleAlloc), State: "dead", Addr: n.Addr, Session: uint64(n.Session), LeaseLeftMs: -1})
			m.SectionsDesired, m.Drained = desired[i], n.Drained
		}
	}
	slices.SortFunc(out, func(a, b *pb.MemberStatus) int {
		return cmp.Or(-cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Leases implements pb.AdminServer.
func (s adminServer) Leases(ctx context.Context, req *pb.LeasesRequest) (*pb.LeasesReply, error) {
	o, err := s.owners(ctx)
	if err != nil {
		return nil, err
	}
	t := s.a.routes.table()
	reply := &pb.LeasesReply{RouteVersion: t.version()}
	want := req.Sections
	if len(want) == 0 {
		for _, c := range s.a.cells {
			if req.All || s.a.stateOf(c) == owned {
				want = append(want, uint32(c.id))
			}
		}
	}
	for _, id := range want {
		if int(id) >= len(s.a.cells) {
			return nil, fmt.Errorf("%w: %d, expected 0 to %d", seq.ErrUnknownSection, id, len(s.a.cells)-1)
		}
		reply.Leases = append(reply.Leases, leaseInfo(t, o, seq.SectionID(id)))
	}
	return reply, nil
}

func leaseInfo(t *table, o ownership, id seq.SectionID) *pb.LeaseInfo {
	out := o.regs[seq.SectionRegister(id)]
	info := &pb.LeaseInfo{Section: uint32(id), Max: out.Max, Round: out.Accepted.Round,
		Session: uint64(out.Accepted.Session), Node: o.names[out.Accepted.Session], LeaseLeftMs: -1}
	if out.Holder != 0 {
		info.Session, info.Node = uint64(out.Holder), o.names[out.Holder]
		info.LeaseLeftMs = max(out.Remaining, o.left[out.Holder]).Milliseconds()
	}
	if t == nil {
		return info
	}
	for k, i := range t.Sections[id].Candidates() {
		if i < 0 {
			continue
		}
		if k == 0 {
			info.Desired = t.Nodes[i].Name
		} else {
			info.Standbys = append(info.Standbys, t.Nodes[i].Name)
		}
	}
	return info
}

// Events implements pb.AdminServer.
func (s adminServer) Events(ctx context.Context, req *pb.EventsRequest) (*pb.EventsReply, error) {
	log, _, err := s.a.loadEvents(ctx)
	if err != nil {
		return nil, err
	}
	limit := int(req.Limit)
	if limit == 0 {
		limit = 100
	}
	reply := &pb.EventsReply{}
	for _, e := range log[max(0, len(log)-limit):] {
		reply.Events = append(reply.Events, &pb.Event{Id: e.ID, UnixMs: e.UnixMS, Node: e.Node, Kind: e.Kind, Subject: e.Subject, Reason: e.Reason})
	}
	return reply, nil
}

// change alters the table by an operator's wish and plans what follows from it, in
// one write.
func (s adminServer) change(ctx context.Context, force bool, what event, alter func(t *seq.RouteTable) (*seq.RouteTable, error)) (*pb.ChangeReply, error) {
	var moved uint32
	next, err := s.a.changeRoutes(ctx, func(t *seq.RouteTable) ([]event, error) {
		before := slices.Clone(t.Sections)
		names := nodeNames(t)
		altered, err := alter(t)
		if err != nil {
			return nil, err
		}
		var events []event
		if what.Kind != "" {
			events = append(events, what)
		}
		if planned, changes := placement.Plan(s.a.arbiter.input(altered, force)); planned != nil {
			altered = planned
			events = append(events, toEvents(changes)...)
		}
		*t = *altered
		moved = countMoved(before, names, t)
		return events, nil
	})
	if err != nil {
		return nil, err
	}
	return &pb.ChangeReply{RouteVersion: next.Version, Moved: moved}, nil
}

func nodeNames(t *seq.RouteTable) []string {
	names := make([]string, len(t.Nodes))
	for i, n := range t.Nodes {
		names[i] = n.Name
	}
	return names
}

// countMoved counts the sections whose desired owner is another node than before.
func countMoved(before []seq.Placement, names []string, t *seq.RouteTable) (moved uint32) {
	for id, p := range before {
		owner, _ := t.Owner(seq.SectionID(id))
		old := ""
		if p.Owner >= 0 {
			old = names[p.Owner]
		}
		if owner.Name != old {
			moved++
		}
	}
	return moved
}

// Drain implements pb.AdminServer. The table only says that the node is to be empty:
// the node hands its sections over itself and writes who has them.
func (s adminServer) Drain(ctx context.Context, req *pb.DrainRequest) (*pb.ChangeReply, error) {
	kind := "drain"
	if req.Undo {
		kind = "undrain"
	}
	var toMove uint32
	next, err := s.a.changeRoutes(ctx, func(t *seq.RouteTable) ([]event, error) {
		drained, err := placement.Drain(t, req.Node, req.Undo)
		if err != nil {
			return nil, err
		}
		*t, toMove = *drained, 0
		if !req.Undo {
			toMove = uint32(countOwned(t, req.Node))
		}
		return []event{{Kind: kind, Subject: req.Node, Reason: "operator"}}, nil
	})
	if err != nil {
		return nil, err
	}
	s.a.arbiter.loop.kick()
	return &pb.ChangeReply{RouteVersion: next.Version, Moved: toMove}, nil
}

// countOwned counts the sections that the table gives to the node.
func countOwned(t *seq.RouteTable, name string) (n int) {
	me := t.Index(name)
	for _, p := range t.Sections {
		if me >= 0 && int(p.Owner) == me {
			n++
		}
	}
	return n
}

// Move implements pb.AdminServer.
func (s adminServer) Move(ctx context.Context, req *pb.MoveRequest) (*pb.ChangeReply, error) {
	if int(req.Section) >= len(s.a.cells) {
		return nil, fmt.Errorf("%w: %d, expected 0 to %d", seq.ErrUnknownSection, req.Section, len(s.a.cells)-1)
	}
	what := event{Kind: "move", Subject: fmt.Sprintf("section %d", req.Section), Reason: "operator: to " + req.Node}
	if req.Node == "" {
		what.Reason = "operator: unpinned"
	}
	live := s.a.view(s.a.clock.Now()).live
	return s.change(ctx, false, what, func(t *seq.RouteTable) (*seq.RouteTable, error) {
		return placement.Move(t, seq.SectionID(req.Section), req.Node, func(name string) bool {
			s, ok := live[name]
			return ok && t.Nodes[t.Index(name)].Takes(s.Session)
		})
	})
}

// Rebalance implements pb.AdminServer.
func (s adminServer) Rebalance(ctx context.Context, _ *pb.RebalanceRequest) (*pb.ChangeReply, error) {
	return s.change(ctx, true, event{}, func(t *seq.RouteTable) (*seq.RouteTable, error) {
		return t, nil
	})
}

package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/allocsvr/nodes"
	"github.com/seqsvr/seqsvr/allocsvr/owner"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/base/watch"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/membership"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Admin serves operators: reading, and changes of the route table.
type Admin struct {
	pb.UnimplementedAdminServer
	Name     string // of this node
	Session  seq.Session
	Cluster  string
	Era      seq.Era
	Lease    time.Duration
	Sections *section.Table
	Owner    *owner.Owner
	Routes   *arbiter.Routes
	Arbiter  *arbiter.Arbiter
	Nodes    *nodes.Nodes
	Holder   *ownership.Holder
	Sessions func() []quorum.SessionView
	Needed   func() int // W
	Ready    func() error
	View     *membership.View // nil without gossip
	// Stores asks every store for its state.
	Stores func(context.Context) []*pb.StoreStatus
	// ReadSections reads the registers of all sections at a quorum of stores.
	ReadSections func(context.Context) (map[seq.Register]quorum.Outcome, error)
	Clock        clock.Clock
	// Refused counts what the node refuses. If nil, nothing is known.
	Refused   *rpc.Refused
	Exposed   bool                        // other machines reach this node in plaintext
	Keys      func() documents.KeyEntries // in use on this node; if nil, seq.HashKey hashes all keys
	KeyHashes *documents.Keys             // the stores' copy
	Growth    Growth
	// ClockAhead calls quorum.Leases.ClockAhead. If nil, nothing is known.
	ClockAhead func() (time.Duration, bool)
	Record     func() sets.Record // the sections of the Set, as this node knows them
	DevLog     string             // the log of the `seqctl dev` that runs the node, if any
}

// askBound bounds the stores' part of Status. Callers wait 4 s for a reply (survey.Patience), and need it
// most while the stores do not answer.
const askBound = 3 * time.Second

// Status implements pb.AdminServer.
func (s *Admin) Status(ctx context.Context, req *pb.StatusRequest) (*pb.StatusReply, error) {
	t, totals := s.Routes.Table(), s.Sections.Totals()
	reply := &pb.StatusReply{
		ClusterId: s.Cluster, Era: uint64(s.Era), Node: s.Name, Session: uint64(s.Session), RouteVersion: t.Version(),
		Sections: uint32(s.Sections.Len()), LeaseUs: uint64(s.Lease / time.Microsecond), Version: version.Get().Version, Protocol: version.Protocol,
		Numbers: totals.Numbers, Steps: totals.Steps, Takeovers: s.Owner.Takeovers(),
		Handoffs: s.Owner.Handoffs(), Nacks: totals.Lost, DevLog: s.DevLog, Brief: req.GetBrief(), W: uint32(s.Needed()),
	}
	serving, inMemory := s.Sections.Census()
	reply.SectionsOwned, reply.Counters = uint32(serving), uint64(inMemory)
	m := s.Sections.Memory()
	reply.UidMemoryBytes, reply.UidMemoryBudget, reply.FoldedBlocks, reply.UidsRefused = m.Used, m.Budget, m.Folded, m.Refused
	reply.Refused = s.Refused.RecentToProto()
	reply.Reading = readingToProto(s.Sections.Reading())
	if t != nil {
		reply.Frozen, reply.SectionsOneZone = t.Frozen, uint32(t.Together())
	}
	if s.ClockAhead != nil {
		if ahead, known := s.ClockAhead(); known {
			reply.ClockAheadMs = proto.Int64(ahead.Milliseconds())
		}
	}
	err := s.Ready()
	if reply.Ready = err == nil; err != nil {
		reply.Reason = err.Error()
	}
	if reply.Brief {
		reply.KeyHashes, reply.Members = s.keyHashes(nil), s.members(t, holdings{})
		ownEndings(s.Sections, reply)
		return reply, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	reply.Stores = s.Stores(ctx)
	if latest, err := s.KeyHashes.Load(ctx); err == nil {
		reply.KeyHashes = s.keyHashes(latest)
	}
	if owners, err := s.owners(ctx); err == nil {
		reply.Arbiter = owners.arbiter
		reply.SectionsUnowned, reply.SectionsMoving = uint32(owners.unowned), uint32(owners.moving)
		endings(s.Sections, owners.regs, reply)
		reply.Members = s.members(t, owners)
	} else {
		reply.Members = s.members(t, holdings{})
	}
	return reply, nil
}

func readingToProto(r section.Reading) *pb.Reading {
	out := &pb.Reading{
		Tickets: uint64(r.Tickets), MostTickets: section.MostTickets, Watches: uint64(r.Watches), Keys: uint64(r.Keys), MostKeys: watch.MostOfNode,
		LatelyMs: uint64(r.Lately.Milliseconds()), Opened: r.Opened, Expired: r.Expired,
	}
	for _, of := range r.Spaces {
		if of.Space.Tickets > 0 || of.Watched > 0 {
			out.Spaces = append(out.Spaces, &pb.SpaceReading{Space: of.Space.Name, Tickets: uint64(of.Open), OldestMs: uint64(of.Oldest.Milliseconds()),
				Expired: of.Expired, Keys: uint64(of.Watched)})
		}
	}
	return out
}

// holdings is which session owns what by the stores.
type holdings struct {
	regs    map[seq.Register]quorum.Outcome
	names   map[seq.Session]string
	count   map[seq.Session]int
	left    map[seq.Session]time.Duration
	arbiter string
	unowned int // by no live session, though they are this Set's
	moving  int // held by none, but the last one that had or has asked for it lives: a hand-over
}

// owners reads all sections and the arbiter's register at a quorum of stores.
func (s *Admin) owners(ctx context.Context) (holdings, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	regs, err := s.ReadSections(ctx)
	if err != nil {
		return holdings{}, err
	}
	now := s.Clock.Now()
	o := holdings{regs: regs, names: map[seq.Session]string{s.Session: s.Name},
		count: map[seq.Session]int{}, left: map[seq.Session]time.Duration{}}
	for _, v := range s.Sessions() {
		o.names[v.Session] = v.Name
		if !v.Dead {
			o.left[v.Session] = max(v.FreeAt-now, 0)
		}
	}
	record := s.Record()
	for reg, out := range regs {
		id, ok := reg.Section()
		if !ok || !record.Has(id) {
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
	found := s.Holder.Look(ctx, seq.ArbiterRegister)
	o.arbiter = o.names[found.Holder]
	if found.Holder == 0 {
		o.arbiter = o.names[found.Accepted.Session]
	}
	return o, nil
}

// members returns the membership view beside the stores' sessions.
func (s *Admin) members(t *arbiter.Table, o holdings) []*pb.MemberStatus {
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
	if s.View != nil {
		for _, m := range s.View.Members() {
			add(&pb.MemberStatus{Name: m.Meta.Name, Role: string(m.Meta.Role), State: m.State.String(),
				SinceUnixMs: m.Since.UnixMilli(), Addr: m.Meta.Addr, Session: m.Meta.Session,
				Protocol: uint32(m.Meta.Protocol), RouteVersion: m.Meta.TableVersion, LeaseLeftMs: -1, Exposed: m.Meta.Exposed, Zone: m.Meta.Zone})
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
		record := s.Record()
		for id, p := range t.Sections {
			if p.Owner >= 0 && record.Has(seq.SectionID(id)) {
				desired[p.Owner]++
			}
		}
		for i, n := range t.Nodes {
			m := add(&pb.MemberStatus{Name: n.Name, Role: string(membership.RoleAlloc), State: "dead", Addr: n.Addr, Session: uint64(n.Session), LeaseLeftMs: -1})
			m.SectionsDesired, m.Drained, m.Zone = desired[i], n.Drained, n.Zone
		}
	}
	if own := byName[string(membership.RoleAlloc)+"/"+s.Name]; own != nil {
		own.Exposed = s.Exposed // without gossip, too
	}
	slices.SortFunc(out, func(a, b *pb.MemberStatus) int {
		return cmp.Or(-cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Leases implements pb.AdminServer.
func (s *Admin) Leases(ctx context.Context, req *pb.LeasesRequest) (*pb.LeasesReply, error) {
	o, err := s.owners(ctx)
	if err != nil {
		return nil, err
	}
	t := s.Routes.Table()
	reply := &pb.LeasesReply{RouteVersion: t.Version()}
	want := req.Sections
	if len(want) == 0 {
		for id := range seq.SectionID(s.Sections.Len()) {
			if req.All || s.Sections.Section(id).State() == section.Owned {
				want = append(want, uint32(id))
			}
		}
	}
	for _, id := range want {
		if int(id) >= s.Sections.Len() {
			return nil, fmt.Errorf("%w: %d, expected 0 to %d", seq.ErrUnknownSection, id, s.Sections.Len()-1)
		}
		reply.Leases = append(reply.Leases, leaseInfo(t, o, seq.SectionID(id)))
	}
	return reply, nil
}

func leaseInfo(t *arbiter.Table, o holdings, id seq.SectionID) *pb.LeaseInfo {
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
	for k, i := range t.Place(id).Candidates() {
		if i < 0 {
			continue
		}
		if k == 0 {
			info.Desired = t.Nodes[i].Name
		} else {
			info.Standbys = append(info.Standbys, t.Nodes[i].Name)
			info.StandbyZones = append(info.StandbyZones, t.Nodes[i].Zone)
		}
	}
	if i := t.Index(info.Node); i >= 0 {
		info.Zone = t.Nodes[i].Zone
	}
	return info
}

// Events implements pb.AdminServer.
func (s *Admin) Events(ctx context.Context, req *pb.EventsRequest) (*pb.EventsReply, error) {
	log, err := s.Routes.Events(ctx)
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

// changed returns the reply to a change of the table.
func changed(c arbiter.Change, err error) (*pb.ChangeReply, error) {
	if err != nil {
		return nil, err
	}
	return &pb.ChangeReply{RouteVersion: c.Version, Moved: c.Moved}, nil
}

// Drain implements pb.AdminServer.
func (s *Admin) Drain(ctx context.Context, req *pb.DrainRequest) (*pb.ChangeReply, error) {
	return changed(s.Arbiter.Drain(ctx, req.Node, req.Undo))
}

// Move implements pb.AdminServer.
func (s *Admin) Move(ctx context.Context, req *pb.MoveRequest) (*pb.ChangeReply, error) {
	if int(req.Section) >= s.Sections.Len() {
		return nil, fmt.Errorf("%w: %d, expected 0 to %d", seq.ErrUnknownSection, req.Section, s.Sections.Len()-1)
	}
	live := s.Nodes.View(s.Clock.Now()).Live
	return changed(s.Arbiter.Move(ctx, seq.SectionID(req.Section), req.Node, func(name string) (seq.Session, bool) {
		v, ok := live[name]
		return v.Session, ok
	}))
}

// Rebalance implements pb.AdminServer.
func (s *Admin) Rebalance(ctx context.Context, _ *pb.RebalanceRequest) (*pb.ChangeReply, error) {
	return changed(s.Arbiter.Rebalance(ctx))
}

// keyHashes returns the hash of the string keys of each space on this node. If latest is not nil, it adds
// the stores' hash.
func (s *Admin) keyHashes(latest documents.KeyEntries) []*pb.KeyHash {
	spaces, keys := s.Sections.Mapping().Spaces, documents.KeyEntries{}
	if s.Keys != nil {
		keys = s.Keys()
	}
	out := make([]*pb.KeyHash, len(spaces))
	for i := range spaces {
		own := keys.Of(&spaces[i])
		out[i] = &pb.KeyHash{Space: spaces[i].Name, Hash: string(own.Hash), Version: own.Version}
		if latest != nil {
			now := latest.Of(&spaces[i])
			out[i].Latest, out[i].LatestHash = now.Version, string(now.Hash)
		}
	}
	return out
}

// Rehash implements pb.AdminServer. The event comes first: a crash in between leaves a line
// too many, never one too few.
func (s *Admin) Rehash(ctx context.Context, req *pb.RehashRequest) (*pb.RehashReply, error) {
	space, err := s.Sections.Mapping().Space(req.Space)
	if err != nil {
		return nil, err
	}
	hash := cmp.Or(seq.KeyHash(req.KeyHash), seq.SecretKeys)
	if err := hash.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", seq.ErrBadArgument, err)
	}
	if err := documents.Rehashable(space); err != nil {
		return nil, err
	}
	err = s.Routes.Record(ctx, []arbiter.Event{{Kind: "rehash", Subject: "space " + space.Name,
		Reason: fmt.Sprintf("operator: string keys by %s, a new secret; allocators go by it from their next start on", hash)}})
	if err != nil {
		return nil, err
	}
	made, err := s.KeyHashes.Rehash(ctx, space, hash)
	if err != nil {
		return nil, err
	}
	return &pb.RehashReply{Version: made.Version}, nil
}

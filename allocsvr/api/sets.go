package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/counters"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/keyhash"
	"github.com/seqsvr/seqsvr/allocsvr/owner"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/allocsvr/setdocs"
	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Sets serves the tools that move sections between Sets: translation, and the log of events.
type Sets struct {
	pb.UnimplementedSetsServer
	Cluster  string
	Name     string // of this node
	Docs     *setdocs.Docs
	Sections *section.Table
	Moves    *owner.Moves
	Routes   *arbiter.Routes
	Keyhash  *keyhash.Document
	IDs      IDs
	// Rehash has this node hash string keys so from now on; it must own nothing.
	Rehash func(keyhash.Entries) error
}

// IDs is what the endpoint of global IDs does for Sets: globalid.Service.
type IDs interface {
	Join(ctx context.Context) error
	Gave(ctx context.Context, cluster string) (bool, error)
	Allot(ctx context.Context, cluster string, others []string, wish namespaces.Wish) ([]byte, error)
	Settle(ctx context.Context, told [][]byte) error
}

// Map implements pb.SetsServer.
func (s *Sets) Map(ctx context.Context, req *pb.SetMapRequest) (*pb.SetMapReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if known := s.Docs.Map(); req.GetNewerThan() > 0 || !s.Docs.Known().IsRoot() {
		if known.Version <= req.GetNewerThan() {
			return &pb.SetMapReply{}, nil
		}
		return mapReply(known, false), nil
	}
	m, err := s.Docs.LoadMap(ctx)
	if err != nil {
		return nil, err
	}
	return mapReply(m, req.GetWhole()), nil
}

func mapReply(m sets.Map, whole bool) *pb.SetMapReply {
	reply := &pb.SetMapReply{Sets: rpc.SetMapToProto(m), Restored: m.Restored}
	if whole {
		reply.By, reply.Ceilings = m.By, m.Ceilings
	}
	return reply
}

// ChangeMap implements pb.SetsServer.
func (s *Sets) ChangeMap(ctx context.Context, req *pb.ChangeSetMapRequest) (*pb.SetMapReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	edit, event, err := s.edit(req)
	if err != nil {
		return nil, err
	}
	if add := req.GetAdd(); add.GetFresh() {
		if err := s.fresh(ctx, add.GetSet().GetClusterId()); err != nil {
			return nil, err
		}
	}
	if err := s.Routes.Record(ctx, []arbiter.Event{event}); err != nil {
		return nil, err
	}
	if told := req.GetSettle().GetNamespaces(); len(told) > 0 { // before the map counts as settled
		if err := s.IDs.Settle(ctx, told); err != nil {
			return nil, err
		}
	}
	if add := req.GetAdd(); add != nil {
		if err := s.Docs.Found(ctx, add.GetRoot().GetName()); err != nil {
			return nil, err
		}
	}
	var move sets.Move
	m, err := s.Docs.ChangeMap(ctx, func(now sets.Map) (next sets.Map, changed bool, err error) {
		return edit(now, &move)
	})
	if err != nil {
		return nil, err
	}
	reply := mapReply(m, true)
	reply.Move = move.ID
	return reply, nil
}

// edit is what a request asks for, and how the log of events tells it.
func (s *Sets) edit(req *pb.ChangeSetMapRequest) (func(now sets.Map, began *sets.Move) (sets.Map, bool, error), arbiter.Event, error) {
	event := arbiter.Event{Kind: "sets", Subject: "map of Sets"}
	switch {
	case req.GetAdd() != nil:
		add, root := rpc.SetFromProto(req.GetAdd().GetSet()), rpc.SetFromProto(req.GetAdd().GetRoot())
		root.Cluster = s.Cluster
		event.Reason = fmt.Sprintf("operator: Set %s at %v", add.Name, add.Addrs)
		return func(now sets.Map, _ *sets.Move) (sets.Map, bool, error) { return now.Add(root, add) }, event, nil
	case req.GetBegin() != nil:
		to, ranges := req.GetBegin().GetTo(), rpc.RangesFromProto(req.GetBegin().GetSections())
		event.Reason = fmt.Sprintf("operator: sections %v are to move to Set %s", ranges, to)
		if err := s.movable(ranges); err != nil {
			return nil, event, err
		}
		return func(now sets.Map, began *sets.Move) (next sets.Map, changed bool, err error) {
			if next, *began, err = now.Begin(to, ranges, time.Now()); err != nil && !errors.Is(err, seq.ErrBadArgument) {
				err = fmt.Errorf("%w: %w", seq.ErrBadArgument, err) // no retry helps
			}
			return next, next.Version != now.Version, err
		}, event, nil
	case req.GetNumber() != nil:
		least := req.GetNumber().GetLeast()
		event.Reason = "operator: a number for sections to be settled"
		return func(now sets.Map, took *sets.Move) (sets.Map, bool, error) {
			next, id := now.Number(least)
			took.ID = id
			return next, true, nil
		}, event, nil
	case req.GetSettle() != nil:
		return s.settle(req.GetSettle(), event)
	case req.GetArrive() != nil:
		a := req.GetArrive()
		if len(a.GetCeilings()) != len(a.GetSections()) {
			return nil, event, fmt.Errorf("%w: %d ceilings of %d sections", seq.ErrBadArgument, len(a.GetCeilings()), len(a.GetSections()))
		}
		arrived := make(map[seq.SectionID]uint64)
		for i, id := range a.GetSections() {
			arrived[seq.SectionID(id)] = a.GetCeilings()[i]
		}
		event.Reason = fmt.Sprintf("move %d: %d sections have arrived", a.GetMove(), len(arrived))
		return func(now sets.Map, _ *sets.Move) (sets.Map, bool, error) {
			next, changed := now.Arrive(a.GetMove(), arrived)
			return next, changed, nil
		}, event, nil
	case req.GetAbort() != nil:
		a, ranges := req.GetAbort(), rpc.RangesFromProto(req.GetAbort().GetSections())
		event.Reason = fmt.Sprintf("operator: move %d of sections %v aborted", a.GetMove(), ranges)
		return func(now sets.Map, _ *sets.Move) (sets.Map, bool, error) {
			next, changed := now.Abort(a.GetMove(), ranges)
			return next, changed, nil
		}, event, nil
	}
	return nil, event, fmt.Errorf("%w: no change of the map of Sets, expected add, begin, arrive or abort", seq.ErrBadArgument)
}

// settle is the change that notes where sections were found to be.
func (s *Sets) settle(req *pb.ChangeSetMapRequest_Settle, event arbiter.Event) (func(now sets.Map, began *sets.Move) (sets.Map, bool, error), arbiter.Event, error) {
	where := make(map[seq.SectionID]uint32)
	for _, run := range req.GetRuns() {
		for _, id := range sets.Sections(rpc.RangesFromProto([]*pb.SectionRange{run.GetSections()})) {
			if err := s.section(uint32(id)); err != nil {
				return nil, event, err
			}
			where[id] = run.GetSet()
		}
	}
	ceilings := make(map[seq.SectionID]uint64, len(req.GetCeilings()))
	for id, ceiling := range req.GetCeilings() {
		ceilings[seq.SectionID(id)] = ceiling
	}
	event.Reason = fmt.Sprintf("operator: %d sections settled by number %d", len(where), req.GetNumber())
	return func(now sets.Map, _ *sets.Move) (sets.Map, bool, error) {
		in := make(map[seq.SectionID]string, len(where))
		for id, i := range where {
			if int(i) >= len(now.Sets) {
				return now, false, fmt.Errorf("%w: section %d in Set %d of %d", seq.ErrBadArgument, id, i, len(now.Sets))
			}
			in[id] = now.Sets[i].Name
		}
		next, err := now.Settle(req.GetNumber(), in, ceilings, req.GetWhole(), rpc.SetMovesFromProto(req.GetMoves()))
		return next, err == nil, err
	}, event, nil
}

// movable refuses sections that there are not, and those of exact spaces.
func (s *Sets) movable(ranges []sets.Range) error {
	m := s.Sections.Mapping()
	for _, id := range sets.Sections(ranges) {
		space, err := m.SpaceOf(id)
		if err != nil {
			return err
		}
		if space.Mode == seq.Exact {
			return fmt.Errorf("%w: section %d is of the exact space %q, which stays in its Set", seq.ErrBadArgument, id, space.Name)
		}
	}
	return nil
}

func (s *Sets) record(r sets.Record) *pb.SetRecordReply {
	reply := rpc.SetRecordToProto(r)
	reply.ClusterId, reply.Sections = s.Cluster, uint32(s.Sections.Len())
	return reply
}

// Record implements pb.SetsServer.
func (s *Sets) Record(ctx context.Context, _ *pb.SetRecordRequest) (*pb.SetRecordReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r, err := s.Docs.Load(ctx)
	if err != nil {
		return nil, err
	}
	return s.record(r), nil
}

// Keys implements pb.SetsServer.
func (s *Sets) Keys(ctx context.Context, _ *pb.SetKeysRequest) (*pb.SetKeysReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	keys, err := s.Keyhash.Share(ctx)
	return &pb.SetKeysReply{Keys: keys}, err
}

// Step implements pb.SetsServer.
func (s *Sets) Step(ctx context.Context, req *pb.SetStepRequest) (*pb.SetRecordReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	step := sets.Step{Op: sets.Op(req.GetOp()), Move: req.GetMove(), To: req.GetTo(), Above: req.GetAbove()}
	if step.Op == sets.Finish {
		owners := make(map[seq.SectionID]string, len(req.GetOwners()))
		for id, addr := range req.GetOwners() {
			owners[seq.SectionID(id)] = addr
		}
		s.Moves.SendOn(step.Move, owners)
	}
	r, err := s.Docs.Step(ctx, step, rpc.RangesFromProto(req.GetSections()))
	if err != nil {
		return nil, err
	}
	s.Moves.Settle(r)
	return s.record(r), nil
}

// Stop implements pb.SetsServer.
func (s *Sets) Stop(ctx context.Context, req *pb.StopSectionsRequest) (*pb.StopSectionsReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	ids := make([]seq.SectionID, len(req.GetSections()))
	for i, id := range req.GetSections() {
		if err := s.section(id); err != nil {
			return nil, err
		}
		ids[i] = seq.SectionID(id)
	}
	stopped, left, err := s.Moves.Stop(ctx, req.GetMove(), ids, req.GetUnowned())
	if err != nil {
		return nil, err
	}
	reply := &pb.StopSectionsReply{Left: plainIDs(left)}
	for _, one := range stopped {
		p := &pb.StoppedSection{Section: uint32(one.ID), Ceiling: one.Ceiling, Mark: one.Mark}
		if one.Table != nil {
			p.Counters = one.Table.AppendBinary(nil)
		}
		reply.Stopped = append(reply.Stopped, p)
	}
	return reply, nil
}

// Open implements pb.SetsServer.
func (s *Sets) Open(ctx context.Context, req *pb.OpenSectionsRequest) (*pb.OpenSectionsReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	in := make([]owner.Stopped, len(req.GetSections()))
	for i, p := range req.GetSections() {
		if err := s.section(p.GetSection()); err != nil {
			return nil, err
		}
		if p.GetCeiling() > uint64(seq.MaxSeq) {
			return nil, fmt.Errorf("%w: ceiling %d of section %d, expected at most %d", seq.ErrBadArgument, p.GetCeiling(), p.GetSection(), uint64(seq.MaxSeq))
		}
		in[i] = owner.Stopped{ID: seq.SectionID(p.GetSection()), Ceiling: p.GetCeiling(), Mark: p.GetMark()}
		if len(p.GetCounters()) == 0 {
			continue
		}
		table, err := counters.Decode(p.GetCounters())
		if err != nil {
			return nil, fmt.Errorf("%w: counters of section %d: %w", seq.ErrBadArgument, p.GetSection(), err)
		}
		if table.High() > p.GetCeiling() {
			return nil, fmt.Errorf("%w: counters of section %d go to %d, above the ceiling %d", seq.ErrBadArgument, p.GetSection(), table.High(), p.GetCeiling())
		}
		in[i].Table = table
	}
	slices.SortFunc(in, func(x, y owner.Stopped) int { return cmp.Compare(x.ID, y.ID) })
	opened, active, left, err := s.Moves.Open(ctx, req.GetMove(), in, req.GetKeep())
	if err != nil {
		return nil, err
	}
	return &pb.OpenSectionsReply{Opened: plainIDs(opened), Active: plainIDs(active), Left: plainIDs(left)}, nil
}

// Allot implements pb.SetsServer.
func (s *Sets) Allot(ctx context.Context, req *pb.AllotRequest) (*pb.AllotReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	wish := namespaces.Wish{Namespace: req.GetNamespace(), Have: req.GetHave(),
		Datacenter: namespaces.Datacenter{ID: snowflake.Datacenter(req.GetDatacenterId()), Name: req.GetDatacenter()}}
	if req.WorkerId != nil {
		w := snowflake.Worker(req.GetWorkerId())
		wish.Worker = &w
	}
	var others []string
	if wish.Namespace != "" {
		all, err := s.Docs.LoadMap(ctx)
		if err != nil {
			return nil, err
		}
		for _, one := range all.Sets {
			if one.Cluster != s.Cluster {
				others = append(others, one.Cluster)
			}
		}
		if !slices.Contains(others, req.GetClusterId()) {
			return nil, fmt.Errorf("%w: cluster %q is no other Set of this root", seq.ErrForeignCluster, req.GetClusterId())
		}
	}
	told, err := s.IDs.Allot(ctx, req.GetClusterId(), others, wish)
	return &pb.AllotReply{Namespaces: told}, err
}

func (s *Sets) section(id uint32) error {
	if n := s.Sections.Len(); int64(id) >= int64(n) {
		return fmt.Errorf("%w: %d, expected 0 to %d", seq.ErrUnknownSection, id, n-1)
	}
	return nil
}

func plainIDs(ids []seq.SectionID) []uint32 {
	out := make([]uint32, len(ids))
	for i, id := range ids {
		out[i] = uint32(id)
	}
	return out
}

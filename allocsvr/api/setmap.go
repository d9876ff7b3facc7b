package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

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
	if req.GetAdd() != nil {
		if err := s.require(ctx); err != nil {
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

// edit returns the change that a request asks for, and its event for the log.
func (s *Sets) edit(req *pb.ChangeSetMapRequest) (func(now sets.Map, began *sets.Move) (sets.Map, bool, error), arbiter.Event, error) {
	event := arbiter.Event{Kind: "sets", Subject: "map of Sets"}
	switch {
	case req.GetAdd() != nil:
		add, root := rpc.SetFromProto(req.GetAdd().GetSet()), rpc.SetFromProto(req.GetAdd().GetRoot())
		root.Cluster, root.Incarnation = s.Cluster, s.Incarnation
		event.Reason = fmt.Sprintf("operator: Set %s at %v", add.Name, add.Addrs)
		return func(now sets.Map, _ *sets.Move) (sets.Map, bool, error) { return now.Add(root, add) }, event, nil
	case req.GetBegin() != nil:
		to := req.GetBegin().GetTo()
		ranges, err := rangesOf(req.GetBegin().GetSections())
		if err == nil {
			err = s.movable(ranges)
		}
		if err != nil {
			return nil, event, err
		}
		event.Reason = fmt.Sprintf("operator: sections %v are to move to Set %s", ranges, to)
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
		a := req.GetAbort()
		ranges, err := rangesOf(a.GetSections())
		if err != nil {
			return nil, event, err
		}
		event.Reason = fmt.Sprintf("operator: move %d of sections %v aborted", a.GetMove(), ranges)
		return func(now sets.Map, _ *sets.Move) (sets.Map, bool, error) {
			next, changed := now.Abort(a.GetMove(), ranges)
			return next, changed, nil
		}, event, nil
	}
	return nil, event, fmt.Errorf("%w: no change of the map of Sets, expected add, begin, arrive, abort, number or settle", seq.ErrBadArgument)
}

// settle returns the change that notes where sections were found to be.
func (s *Sets) settle(req *pb.ChangeSetMapRequest_Settle, event arbiter.Event) (func(now sets.Map, began *sets.Move) (sets.Map, bool, error), arbiter.Event, error) {
	where := make(map[seq.SectionID]uint32)
	for _, run := range req.GetRuns() {
		ranges, err := rangesOf([]*pb.SectionRange{run.GetSections()})
		if err != nil {
			return nil, event, err
		}
		for _, id := range sets.Sections(ranges) {
			if err := s.section(uint32(id)); err != nil {
				return nil, event, err
			}
			where[id] = run.GetSet()
		}
	}
	found := sets.Found{Number: req.GetNumber(), Ceilings: rpc.OfSections(req.GetCeilings()), Seen: rpc.OfSections(req.GetSeen()),
		Whole: req.GetWhole(), Open: rpc.SetMovesFromProto(req.GetMoves())}
	event.Reason = fmt.Sprintf("operator: %d sections settled by number %d", len(where), req.GetNumber())
	return func(now sets.Map, _ *sets.Move) (sets.Map, bool, error) {
		found.In = make(map[seq.SectionID]string, len(where))
		for id, i := range where {
			if int(i) >= len(now.Sets) {
				return now, false, fmt.Errorf("%w: section %d in Set %d of %d", seq.ErrBadArgument, id, i, len(now.Sets))
			}
			found.In[id] = now.Sets[i].Name
		}
		next, err := now.Settle(found)
		return next, err == nil, err
	}, event, nil
}

// rangesOf returns the ranges of a request, or seq.ErrBadArgument. Their sections may be enumerated only if
// there is no error.
func rangesOf(p []*pb.SectionRange) ([]sets.Range, error) {
	ranges := rpc.RangesFromProto(p)
	return ranges, sets.CheckRanges(ranges)
}

// movable refuses unknown sections and sections of exact spaces.
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

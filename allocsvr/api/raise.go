package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Raise implements pb.SequenceServer.
func (s *Sequence) Raise(ctx context.Context, req *pb.RaiseRequest) (*pb.RaiseReply, error) {
	space, key, err := s.counter(ctx, req.Space, req.Id, req, func() error { return seq.CheckFloor("at_least", req.AtLeast) })
	if err != nil {
		return nil, err
	}
	ctx, leave, err := s.enterOne(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	value, err := s.Sections.Raise(ctx, space, key, req.AtLeast, section.Reach{Force: req.Force, Within: req.MaxJump})
	if err != nil {
		return nil, refusal(err)
	}
	reply := &pb.RaiseReply{Value: value}
	reply.RouteVersion, reply.Routes = s.routesFor(req.RouteVersion)
	return reply, nil
}

// BatchRaise implements pb.SequenceServer. Nothing is raised if any batch cannot be read.
func (s *Sequence) BatchRaise(ctx context.Context, req *pb.BatchRaiseRequest) (*pb.BatchRaiseReply, error) {
	keys, err := rpc.RaisedKeys(req.Batches)
	if err != nil {
		return nil, err
	}
	place, err := s.Limits.inWork.Enter(ctx, keys)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	ctx, cancel := bounded(ctx)
	defer cancel()
	hashes := rpc.HashesKeys(ctx)
	spaces, counters := make([]*seq.Space, len(req.Batches)), make([]seq.Counters, len(req.Batches))
	reply := &pb.BatchRaiseReply{Results: make([]*pb.RaiseResult, len(req.Batches))}
	for i, b := range req.Batches {
		space, hash, err := s.space(hashes, b.GetSpace())
		switch {
		case errors.Is(err, seq.ErrUnknownSpace):
			n := len(b.GetAtLeast())
			reply.Results[i] = &pb.RaiseResult{Values: make([]uint64, n), Errors: rpc.ErrorOfAll(fmt.Errorf("batches[%d]: %w", i, err), n)}
		case err != nil:
			return nil, fmt.Errorf("batches[%d]: %w", i, err)
		default:
			spaces[i], counters[i] = space, hash.Counters(seq.Batch{UIDs: b.GetUids(), Keys: b.GetKeys()})
		}
	}
	for i, b := range req.Batches {
		if spaces[i] == nil {
			continue
		}
		values, faults := s.Sections.RaiseAll(ctx, spaces[i], counters[i], b.GetAtLeast(), b.GetMaxJump())
		reply.Results[i] = &pb.RaiseResult{Values: values, Errors: keyErrors(faults)}
	}
	reply.RouteVersion, reply.Routes = s.routesFor(req.RouteVersion)
	return reply, nil
}

// sectionOf is a section that a request names by its place in a space.
func (s *Admin) sectionOf(name string, at uint32) (*seq.Space, seq.SectionID, error) {
	space, err := s.Sections.Mapping().Space(name)
	if err != nil {
		return nil, 0, err
	}
	if uint64(at) >= uint64(space.Sections) {
		return nil, 0, fmt.Errorf("%w: section %d of space %q, expected 0 to %d", seq.ErrUnknownSection, at, space.Name, space.Sections-1)
	}
	return space, space.First + seq.SectionID(at), nil
}

// Counters implements pb.AdminServer. A counter whose UID belongs into another section is a
// string key's, placed by its public hash: it can be told from a UID's by that alone.
func (s *Admin) Counters(ctx context.Context, req *pb.CountersRequest) (*pb.CountersReply, error) {
	space, id, err := s.sectionOf(req.Space, req.Section)
	if err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	page, err := s.Sections.Page(ctx, id, req.From)
	if err != nil {
		return nil, err
	}
	reply := &pb.CountersReply{Base: page.Base, Highest: page.Highest, Next: page.Next}
	for i, uid := range page.UIDs {
		if space.SectionOf(seq.UID(uid)) != id {
			reply.Others++
			continue
		}
		reply.Uids, reply.Values = append(reply.Uids, uid), append(reply.Values, page.Values[i])
	}
	return reply, nil
}

// RaiseSection implements pb.AdminServer.
func (s *Admin) RaiseSection(ctx context.Context, req *pb.RaiseSectionRequest) (*pb.RaiseSectionReply, error) {
	space, id, err := s.sectionOf(req.Space, req.Section)
	if err == nil && uint64(req.Sections) != uint64(space.Sections) {
		err = fmt.Errorf("%w: space %q has %d sections, expected %d: other keys are in section %d here", seq.ErrBadMapping, space.Name, space.Sections, req.Sections, req.Section)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	base, err := s.Sections.RaiseSection(ctx, id, req.AtLeast)
	if err != nil {
		return nil, err
	}
	return &pb.RaiseSectionReply{Base: base}, nil
}

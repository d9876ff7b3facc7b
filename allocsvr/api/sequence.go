package api

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// defaultWait bounds a request whose caller set no deadline.
const defaultWait = 5 * time.Second

// Sequence is the service for callers: checks and translation only.
type Sequence struct {
	pb.UnimplementedSequenceServer
	Cluster    string
	Sections   *section.Table
	RouteTable *arbiter.Routes
	Limits     *Limits
}

// routesFor is the version for a reply and, to a caller behind it, the table.
func (s *Sequence) routesFor(callers uint64) (uint64, *pb.RouteTable) {
	t := s.RouteTable.Table()
	switch {
	case t == nil:
		return 0, nil
	case callers > t.Version():
		s.RouteTable.Hint(callers)
		return t.Version(), nil
	case callers == 0 || callers == t.Version():
		return t.Version(), nil
	}
	return t.Version(), t.Wire
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, defaultWait)
}

// Next implements pb.SequenceServer.
func (s *Sequence) Next(ctx context.Context, req *pb.NextRequest) (*pb.NextReply, error) {
	space, err := s.Sections.Mapping().Space(req.Space)
	if err != nil {
		return nil, err
	}
	uid, err := rpc.KeyOf(req.Id, req.GetUid(), req.GetKey())
	if err != nil {
		return nil, err
	}
	if err := seq.CheckCount("count", uint64(req.Count)); err != nil {
		return nil, err
	}
	if err := s.Limits.inWork.Enter(1); err != nil {
		return nil, err
	}
	defer s.Limits.inWork.Leave(1)
	t := s.Sections.Begin(space, []seq.UID{uid}, []uint32{req.Count})
	if !t.Settled() {
		var cancel context.CancelFunc
		ctx, cancel = bounded(ctx)
		defer cancel()
	}
	t.Settle(ctx)
	got := t.Out()
	if len(got.Faults) > 0 {
		return nil, got.Faults[0].Err
	}
	reply := &pb.NextReply{First: got.First[0], Last: got.Last[0], Unordered: got.Unordered}
	reply.RouteVersion, reply.Routes = s.routesFor(req.RouteVersion)
	return reply, nil
}

// uidsOf checks the batch at that index of its request and resolves its keys.
func (s *Sequence) uidsOf(at int, b *pb.Batch, counts []uint32) (*seq.Space, []seq.UID, error) {
	space, err := s.Sections.Mapping().Space(b.Space)
	if err != nil {
		return nil, nil, fmt.Errorf("batches[%d]: %w", at, err)
	}
	uids, err := seq.Batch{UIDs: b.Uids, Keys: b.Keys, Counts: counts}.Resolve(at)
	return space, uids, err
}

func keyErrors(faults []section.Fault) []*pb.KeyError {
	if len(faults) == 0 {
		return nil
	}
	out := make([]*pb.KeyError, len(faults))
	for i, f := range faults {
		out[i] = rpc.ToKeyError(f.Index, f.Err)
	}
	return out
}

// Current implements pb.SequenceServer.
func (s *Sequence) Current(ctx context.Context, req *pb.CurrentRequest) (*pb.CurrentReply, error) {
	keys := rpc.Keys(req.Batches)
	if err := seq.CheckKeys("batches", keys); err != nil {
		return nil, err
	}
	if err := s.Limits.inWork.Enter(keys); err != nil {
		return nil, err
	}
	defer s.Limits.inWork.Leave(keys)
	ctx, cancel := bounded(ctx)
	defer cancel()
	reply := &pb.CurrentReply{Results: make([]*pb.CurrentResult, len(req.Batches))}
	for i, b := range req.Batches {
		space, uids, err := s.uidsOf(i, b, nil)
		if err != nil {
			return nil, err
		}
		now, faults := s.Sections.Current(ctx, space, uids)
		result := &pb.CurrentResult{Errors: keyErrors(faults)}
		for _, n := range now {
			result.Values = append(result.Values, n.Value)
			result.UpperBound = append(result.UpperBound, n.UpperBound)
			result.LastTakenUnix = append(result.LastTakenUnix, n.LastTaken)
		}
		reply.Results[i] = result
	}
	reply.RouteVersion, reply.Routes = s.routesFor(req.RouteVersion)
	return reply, nil
}

// Raise implements pb.SequenceServer.
func (s *Sequence) Raise(ctx context.Context, req *pb.RaiseRequest) (*pb.RaiseReply, error) {
	space, err := s.Sections.Mapping().Space(req.Space)
	if err != nil {
		return nil, err
	}
	uid, err := rpc.KeyOf(req.Id, req.GetUid(), req.GetKey())
	if err != nil {
		return nil, err
	}
	if err := s.Limits.inWork.Enter(1); err != nil {
		return nil, err
	}
	defer s.Limits.inWork.Leave(1)
	ctx, cancel := bounded(ctx)
	defer cancel()
	value, err := s.Sections.Raise(ctx, space, uid, req.AtLeast, req.Force)
	if err != nil {
		return nil, err
	}
	reply := &pb.RaiseReply{Value: value}
	reply.RouteVersion, reply.Routes = s.routesFor(req.RouteVersion)
	return reply, nil
}

// Routes implements pb.SequenceServer.
func (s *Sequence) Routes(_ context.Context, req *pb.RoutesRequest) (*pb.RoutesReply, error) {
	t := s.RouteTable.Table()
	reply := &pb.RoutesReply{ClusterId: s.Cluster, Mapping: rpc.MappingToProto(*s.Sections.Mapping()), RouteVersion: t.Version()}
	if t != nil && t.Version() > req.RouteVersion {
		reply.Routes = t.Wire
	}
	return reply, nil
}

package allocsvr

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// defaultWait bounds a request whose caller set no deadline.
const defaultWait = 5 * time.Second

// sequenceServer serves callers: checks and translation only.
type sequenceServer struct {
	pb.UnimplementedSequenceServer
	a *Alloc
}

// routesFor is the version for a reply and, to a caller behind it, the table.
func (s sequenceServer) routesFor(callers uint64) (uint64, *pb.RouteTable) {
	t := s.a.routes.Table()
	switch {
	case t == nil:
		return 0, nil
	case callers > t.Version():
		s.a.routes.Hint(callers)
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

// keyOf is the UID of a request's key.
func keyOf(hasKey bool, uid uint64, key string) (seq.UID, error) {
	if !hasKey {
		return seq.UID(uid), nil
	}
	if len(key) == 0 || len(key) > maxKey {
		return 0, fmt.Errorf("%w: key of %d bytes, expected 1 to %d", seq.ErrBadArgument, len(key), maxKey)
	}
	return seq.HashKey(key), nil
}

// maxKey is the largest length of a string key in bytes.
const maxKey = 1024

// Next implements pb.SequenceServer.
func (s sequenceServer) Next(ctx context.Context, req *pb.NextRequest) (*pb.NextReply, error) {
	space, err := s.a.mapping.Space(req.Space)
	if err != nil {
		return nil, err
	}
	_, hasKey := req.Id.(*pb.NextRequest_Key)
	uid, err := keyOf(hasKey, req.GetUid(), req.GetKey())
	if err != nil {
		return nil, err
	}
	if err := checkCount(req.Count); err != nil {
		return nil, err
	}
	if err := s.a.inWork.Enter(1); err != nil {
		return nil, err
	}
	defer s.a.inWork.Leave(1)
	t := s.a.beginTake(space, []seq.UID{uid}, []uint32{req.Count})
	if !t.settled() {
		var cancel context.CancelFunc
		ctx, cancel = bounded(ctx)
		defer cancel()
	}
	t.settle(ctx)
	got := &t.out
	if len(got.Faults) > 0 {
		return nil, got.Faults[0].Err
	}
	reply := &pb.NextReply{First: got.First[0], Last: got.Last[0], Unordered: got.Unordered}
	reply.RouteVersion, reply.Routes = s.routesFor(req.RouteVersion)
	return reply, nil
}

func checkCount(n uint32) error {
	if n == 0 || n > seq.MaxCount {
		return fmt.Errorf("%w: %d, expected 1 to %d", seq.ErrBadCount, n, seq.MaxCount)
	}
	return nil
}

// uidsOf checks a batch and resolves its keys.
func (s sequenceServer) uidsOf(b *pb.Batch, counts bool) (*seq.Space, []seq.UID, error) {
	space, err := s.a.mapping.Space(b.Space)
	if err != nil {
		return nil, nil, err
	}
	n := len(b.Uids) + len(b.Keys)
	if counts && len(b.Counts) > 0 {
		if len(b.Counts) != n {
			return nil, nil, fmt.Errorf("%w: %d counts for %d keys", seq.ErrBadBatch, len(b.Counts), n)
		}
		for i, c := range b.Counts {
			if err := checkCount(c); err != nil {
				return nil, nil, fmt.Errorf("index %d: %w", i, err)
			}
		}
	}
	// A UID is a uint64, and the request is this call's alone: no copy.
	uids := unsafe.Slice((*seq.UID)(unsafe.SliceData(b.Uids)), len(b.Uids))
	if len(b.Keys) > 0 {
		uids = append(make([]seq.UID, 0, n), uids...)[:n]
	}
	for i, key := range b.Keys {
		if uids[len(b.Uids)+i], err = keyOf(true, 0, key); err != nil {
			return nil, nil, fmt.Errorf("index %d: %w", len(b.Uids)+i, err)
		}
	}
	return space, uids, nil
}

// keysOf is the number of keys over all batches.
func keysOf(batches []*pb.Batch) int {
	n := 0
	for _, b := range batches {
		n += len(b.Uids) + len(b.Keys)
	}
	return n
}

func checkBatches(batches []*pb.Batch) error {
	n := keysOf(batches)
	if n == 0 || n > seq.MaxBatch {
		return fmt.Errorf("%w: %d keys, expected 1 to %d", seq.ErrBadBatch, n, seq.MaxBatch)
	}
	return nil
}

func keyErrors(faults []Fault) []*pb.KeyError {
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
func (s sequenceServer) Current(ctx context.Context, req *pb.CurrentRequest) (*pb.CurrentReply, error) {
	if err := checkBatches(req.Batches); err != nil {
		return nil, err
	}
	keys := keysOf(req.Batches)
	if err := s.a.inWork.Enter(keys); err != nil {
		return nil, err
	}
	defer s.a.inWork.Leave(keys)
	ctx, cancel := bounded(ctx)
	defer cancel()
	reply := &pb.CurrentReply{Results: make([]*pb.CurrentResult, len(req.Batches))}
	for i, b := range req.Batches {
		space, uids, err := s.uidsOf(b, false)
		if err != nil {
			return nil, fmt.Errorf("batch %d: %w", i, err)
		}
		now, faults := s.a.Current(ctx, space, uids)
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
func (s sequenceServer) Raise(ctx context.Context, req *pb.RaiseRequest) (*pb.RaiseReply, error) {
	space, err := s.a.mapping.Space(req.Space)
	if err != nil {
		return nil, err
	}
	_, hasKey := req.Id.(*pb.RaiseRequest_Key)
	uid, err := keyOf(hasKey, req.GetUid(), req.GetKey())
	if err != nil {
		return nil, err
	}
	if err := s.a.inWork.Enter(1); err != nil {
		return nil, err
	}
	defer s.a.inWork.Leave(1)
	ctx, cancel := bounded(ctx)
	defer cancel()
	value, err := s.a.Raise(ctx, space, uid, req.AtLeast, req.Force)
	if err != nil {
		return nil, err
	}
	reply := &pb.RaiseReply{Value: value}
	reply.RouteVersion, reply.Routes = s.routesFor(req.RouteVersion)
	return reply, nil
}

// Routes implements pb.SequenceServer.
func (s sequenceServer) Routes(_ context.Context, req *pb.RoutesRequest) (*pb.RoutesReply, error) {
	t := s.a.routes.Table()
	reply := &pb.RoutesReply{ClusterId: s.a.cluster, Mapping: rpc.MappingToProto(s.a.mapping), RouteVersion: t.Version()}
	if t != nil && t.Version() > req.RouteVersion {
		reply.Routes = t.Wire
	}
	return reply, nil
}

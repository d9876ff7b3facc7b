package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// defaultWait bounds a request whose caller set no deadline.
const defaultWait = 5 * time.Second

// Sequence is the service for callers: checks and translation only.
type Sequence struct {
	pb.UnimplementedSequenceServer
	Cluster string
	// Incarnation is the life of the cluster. If it is not known, replies leave it out.
	Incarnation seq.Incarnation
	Zone        string // of this node, if it is known
	Sections    *section.Table
	RouteTable  *arbiter.Routes
	Sets        *documents.Sets
	Limits      *Limits
	Keys        func() seq.KeyHashers // if nil, seq.HashKey hashes all keys
	// Unheard is called when a request names an unknown space, because the cluster may have added it. The
	// node then looks. Unheard must not block. It may be nil.
	Unheard func()
}

// routesFor returns the version for a reply, and the table if the caller's version is older.
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

// space returns the space of a request and the hasher of its string keys. If the space has a secret, it
// refuses a caller that hashes keys itself, because its UIDs would name different counters than its keys.
func (s *Sequence) space(hashes bool, name string) (*seq.Space, seq.KeyHasher, error) {
	space, err := s.Sections.Mapping().Space(name)
	if err != nil {
		if s.Unheard != nil {
			s.Unheard()
		}
		return nil, seq.KeyHasher{}, err
	}
	var h seq.KeyHasher
	if s.Keys != nil {
		h = s.Keys()[space.Name]
	}
	if hashes && h.Mark() != 0 {
		return nil, h, fmt.Errorf("%w: string keys of space %q are hashed under a secret, and the caller hashes them itself: upgrade the caller", seq.ErrProtocol, space.Name)
	}
	return space, h, nil
}

// counter returns the space and the counter of a request for one key. Here id is the oneof of the request.
// All services check in one order: the count, the key, the request id or floor (with check), then the
// space.
func (s *Sequence) counter(ctx context.Context, name string, id any, of interface {
	GetUid() uint64
	GetKey() string
}, check func() error) (*seq.Space, seq.Counter, error) {
	named, err := rpc.Named(id, of.GetKey())
	if err != nil {
		return nil, seq.Counter{}, err
	}
	if err := check(); err != nil {
		return nil, seq.Counter{}, err
	}
	space, hash, err := s.space(rpc.HashesKeys(ctx), name)
	if err != nil {
		return nil, seq.Counter{}, err
	}
	if named {
		return space, hash.Counter(of.GetKey()), nil
	}
	return space, seq.Plain(seq.UID(of.GetUid())), nil
}

// enterOne takes a place for a request for one key, and bounds its time. leave ends both.
func (s *Sequence) enterOne(ctx context.Context) (within context.Context, leave func(), err error) {
	place, err := s.Limits.inWork.Enter(ctx, 1)
	if err != nil {
		return nil, nil, err
	}
	within, cancel := bounded(ctx)
	return within, func() { cancel(); place.Leave() }, nil
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, defaultWait)
}

// Next implements pb.SequenceServer.
func (s *Sequence) Next(ctx context.Context, req *pb.NextRequest) (*pb.NextReply, error) {
	rpc.OneIfNone(&req.Count)
	if err := seq.CheckCount("count", uint64(req.Count)); err != nil {
		return nil, err
	}
	space, key, err := s.counter(ctx, req.Space, req.Id, req, func() error { return checkRequest(req.RequestId) })
	if err != nil {
		return nil, err
	}
	requests, err := requestOf(space, req.RequestId, req.FirstSentMs)
	if err != nil {
		return nil, err
	}
	place, err := s.Limits.inWork.Enter(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	t := new(section.Taking)
	t.Set(s.Sections, space, key.Alone(), []uint32{req.Count})
	if requests != nil {
		t.Name(requests)
	}
	t.Pass(s.Sections.BatchClock())
	if !t.Settled() {
		place.Waits()
		var cancel context.CancelFunc
		ctx, cancel = bounded(ctx)
		defer cancel()
	}
	t.Settle(ctx)
	got := t.Out()
	if len(got.Faults) > 0 {
		return nil, refusal(got.Faults[0].Err)
	}
	reply := &pb.NextReply{First: got.First[0], Last: got.Last[0], Unordered: got.Unordered, Replayed: len(got.Replayed) > 0 && got.Replayed[0]}
	reply.RouteVersion, reply.Routes = s.routesFor(req.RouteVersion)
	return reply, nil
}

// countersOf checks the batch at that index of its request and hashes its string keys.
func (s *Sequence) countersOf(hashes bool, at int, name string, batch seq.Batch) (*seq.Space, seq.Counters, error) {
	if err := batch.Check(at); err != nil {
		return nil, seq.Counters{}, err
	}
	space, hash, err := s.space(hashes, name)
	if err != nil {
		return nil, seq.Counters{}, fmt.Errorf("batches[%d]: %w", at, err)
	}
	return space, hash.Counters(batch), nil
}

func keyErrors(faults []section.Fault) []*pb.KeyError {
	if len(faults) == 0 {
		return nil
	}
	out := make([]*pb.KeyError, len(faults))
	for i, f := range faults {
		out[i] = rpc.ToKeyError(f.Index, refusal(f.Err))
	}
	return out
}

// Current implements pb.SequenceServer.
func (s *Sequence) Current(ctx context.Context, req *pb.CurrentRequest) (*pb.CurrentReply, error) {
	place, err := s.enter(ctx, req.Batches)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	ctx, cancel := bounded(ctx)
	defer cancel()
	hashes := rpc.HashesKeys(ctx)
	reply := &pb.CurrentReply{Results: make([]*pb.CurrentResult, len(req.Batches))}
	for i, b := range req.Batches {
		space, keys, err := s.countersOf(hashes, i, b.Space, seq.Batch{UIDs: b.Uids, Keys: b.Keys})
		if errors.Is(err, seq.ErrUnknownSpace) {
			n := len(b.Uids) + len(b.Keys)
			reply.Results[i] = &pb.CurrentResult{Values: make([]uint64, n), UpperBound: make([]bool, n), LastTakenUnix: make([]int64, n), Errors: rpc.ErrorOfAll(err, n)}
			continue
		}
		if err != nil {
			return nil, err
		}
		now, faults := s.Sections.Current(ctx, space, keys)
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

// Routes implements pb.SequenceServer.
func (s *Sequence) Routes(_ context.Context, req *pb.RoutesRequest) (*pb.RoutesReply, error) {
	t := s.RouteTable.Table()
	reply := &pb.RoutesReply{ClusterId: s.Cluster, Mapping: rpc.MappingToProto(*s.Sections.Mapping()), RouteVersion: t.Version(), Zone: s.Zone,
		Incarnation: rpc.IncarnationToProto(s.Incarnation)}
	if t != nil && t.Version() > req.RouteVersion {
		reply.Routes = t.Wire
	}
	record, all := s.Sets.Known(), s.Sets.Map()
	if !record.IsRoot() || len(all.Sets) > 0 {
		reply.Set = record.SetName()
	}
	if all.Version > req.GetSetsVersion() {
		reply.Sets = rpc.SetMapToProto(all)
	}
	return reply, nil
}

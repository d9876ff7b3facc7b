package router

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// maxParallel bounds how many batches of one request are forwarded at once.
const maxParallel = 16

// server translates between the wire and the SDK, and does nothing else.
type server struct {
	pb.UnimplementedSequenceServer
	sdk     *client.Client
	inWork  *rpc.Admission
	leaving <-chan struct{}
	routes  atomic.Pointer[pb.RouteTable] // the last table as it travels
}

// table is what a reply carries of the routes to a caller that holds a version.
func (s *server) table(held uint64) (uint64, *pb.RouteTable) {
	routes := s.sdk.Routes()
	if routes == nil {
		return 0, nil
	}
	if held == 0 || held >= routes.Version {
		return routes.Version, nil
	}
	return routes.Version, s.travelling(routes)
}

// travelling converts each table once, not for each caller.
func (s *server) travelling(routes *seq.RouteTable) *pb.RouteTable {
	if t := s.routes.Load(); t.GetVersion() == routes.Version {
		return t
	}
	t := rpc.RoutesToProto(routes)
	s.routes.Store(t)
	return t
}

// Next implements pb.SequenceServer.
func (s *server) Next(ctx context.Context, r *pb.NextRequest) (*pb.NextReply, error) {
	if err := seq.CheckCount("count", uint64(r.GetCount())); err != nil {
		return nil, err
	}
	uid, err := rpc.KeyOf(r.GetId(), r.GetUid(), r.GetKey())
	if err != nil {
		return nil, err
	}
	if err := s.inWork.Enter(1); err != nil {
		return nil, err
	}
	defer s.inWork.Leave(1)
	got, err := s.sdk.Take(ctx, client.Key{Space: r.GetSpace(), UID: uid}, r.GetCount())
	if err != nil {
		return nil, err
	}
	out := &pb.NextReply{First: uint64(got.First), Last: uint64(got.Last), Unordered: got.Unordered}
	out.RouteVersion, out.Routes = s.table(r.GetRouteVersion())
	return out, nil
}

// checked is a batch whose fields are sound.
type checked struct {
	space  string
	uids   []seq.UID
	counts []uint32
}

// checkBatches reads the batches of a request; counted says whether counts matter.
func checkBatches(batches []*pb.Batch, counted bool) ([]checked, error) {
	if err := seq.CheckKeys("batches", rpc.Keys(batches)); err != nil {
		return nil, err
	}
	out := make([]checked, len(batches))
	for i, b := range batches {
		one := seq.Batch{UIDs: b.GetUids(), Keys: b.GetKeys()}
		if counted {
			one.Counts = b.GetCounts()
		}
		uids, err := one.Resolve(i)
		if err != nil {
			return nil, err
		}
		out[i] = checked{b.GetSpace(), uids, one.Counts}
	}
	return out, nil
}

// BatchNext implements pb.SequenceServer.
func (s *server) BatchNext(ctx context.Context, r *pb.BatchNextRequest) (*pb.BatchNextReply, error) {
	batches, err := checkBatches(r.GetBatches(), true)
	if err != nil {
		return nil, err
	}
	keys := rpc.Keys(r.GetBatches())
	if err := s.inWork.Enter(keys); err != nil {
		return nil, err
	}
	defer s.inWork.Leave(keys)
	out := &pb.BatchNextReply{Results: make([]*pb.BatchResult, len(batches))}
	inParallel(len(batches), func(i int) { out.Results[i] = s.nextBatch(ctx, batches[i]) })
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, err // the caller has left; the faults of keys have no code for that
	}
	out.RouteVersion, out.Routes = s.table(r.GetRouteVersion())
	return out, nil
}

func (s *server) nextBatch(ctx context.Context, b checked) *pb.BatchResult {
	out := &pb.BatchResult{First: make([]uint64, len(b.uids))}
	for _, n := range b.counts {
		if n > 1 {
			out.Last = make([]uint64, len(b.uids))
			break
		}
	}
	for i, r := range s.ranges(ctx, b) {
		if r.Err != nil {
			out.Errors = append(out.Errors, rpc.ToKeyError(i, r.Err))
			continue
		}
		out.First[i] = uint64(r.First)
		if out.Last != nil {
			out.Last[i] = uint64(r.Last)
		}
		out.Unordered = out.Unordered || r.Unordered
	}
	return out
}

// ranges sends a batch of one along with the single calls of others.
func (s *server) ranges(ctx context.Context, b checked) []client.Range {
	switch len(b.uids) {
	case 0:
		return nil
	case 1:
		n := uint32(1)
		if len(b.counts) > 0 {
			n = b.counts[0]
		}
		r, _ := s.sdk.Take(ctx, client.Key{Space: b.space, UID: b.uids[0]}, n) // r.Err has the error
		return []client.Range{r}
	}
	got, err := s.sdk.NextBatch(ctx, b.space, b.uids, b.counts)
	if err != nil {
		got = make([]client.Range, len(b.uids))
		for i := range got {
			got[i].Err = err
		}
	}
	return got
}

// Current implements pb.SequenceServer.
func (s *server) Current(ctx context.Context, r *pb.CurrentRequest) (*pb.CurrentReply, error) {
	batches, err := checkBatches(r.GetBatches(), false)
	if err != nil {
		return nil, err
	}
	keys := rpc.Keys(r.GetBatches())
	if err := s.inWork.Enter(keys); err != nil {
		return nil, err
	}
	defer s.inWork.Leave(keys)
	out := &pb.CurrentReply{Results: make([]*pb.CurrentResult, len(batches))}
	inParallel(len(batches), func(i int) { out.Results[i] = s.currentBatch(ctx, batches[i]) })
	out.RouteVersion, out.Routes = s.table(r.GetRouteVersion())
	return out, nil
}

func (s *server) currentBatch(ctx context.Context, b checked) *pb.CurrentResult {
	n := len(b.uids)
	out := &pb.CurrentResult{Values: make([]uint64, n), UpperBound: make([]bool, n), LastTakenUnix: make([]int64, n)}
	if n == 0 {
		return out
	}
	values, err := s.sdk.Current(ctx, b.space, b.uids)
	if err != nil {
		values = make([]client.Value, n)
		for i := range values {
			values[i].Err = err
		}
	}
	for i, v := range values {
		if v.Err != nil {
			out.Errors = append(out.Errors, rpc.ToKeyError(i, v.Err))
			continue
		}
		out.Values[i], out.UpperBound[i] = uint64(v.Seq), v.UpperBound
		if !v.LastTaken.IsZero() {
			out.LastTakenUnix[i] = v.LastTaken.Unix()
		}
	}
	return out
}

// Raise implements pb.SequenceServer.
func (s *server) Raise(ctx context.Context, r *pb.RaiseRequest) (*pb.RaiseReply, error) {
	if err := seq.CheckFloor("at_least", r.GetAtLeast()); err != nil {
		return nil, err
	}
	uid, err := rpc.KeyOf(r.GetId(), r.GetUid(), r.GetKey())
	if err != nil {
		return nil, err
	}
	if err := s.inWork.Enter(1); err != nil {
		return nil, err
	}
	defer s.inWork.Leave(1)
	var options []client.RaiseOption
	if r.GetForce() {
		options = append(options, client.Forced)
	}
	value, err := s.sdk.Raise(ctx, client.Key{Space: r.GetSpace(), UID: uid}, seq.Seq(r.GetAtLeast()), options...)
	if err != nil {
		return nil, err
	}
	out := &pb.RaiseReply{Value: uint64(value)}
	out.RouteVersion, out.Routes = s.table(r.GetRouteVersion())
	return out, nil
}

// Routes implements pb.SequenceServer.
func (s *server) Routes(ctx context.Context, r *pb.RoutesRequest) (*pb.RoutesReply, error) {
	if err := s.sdk.Reach(ctx); err != nil {
		return nil, err
	}
	routes := s.sdk.Routes()
	m, _ := s.sdk.Mapping()
	out := &pb.RoutesReply{ClusterId: s.sdk.ClusterID(), Mapping: rpc.MappingToProto(m), RouteVersion: routes.Version}
	if r.GetRouteVersion() < routes.Version {
		out.Routes = s.travelling(routes)
	}
	return out, nil
}

// inParallel runs do(0) to do(n-1), a bounded number at once, and waits.
func inParallel(n int, do func(i int)) {
	if n == 1 {
		do(0)
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, maxParallel) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}

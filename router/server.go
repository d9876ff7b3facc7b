package router

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// server translates between the wire and the SDK, and does nothing else.
type server struct {
	pb.UnimplementedSequenceServer
	sdk     *client.Client
	door    admission
	leaving <-chan struct{}
	watches *watches
	zone    string
	routes  atomic.Pointer[travelling] // the last table
}

// table is what a reply carries of the routes to a caller that holds a version.
func (s *server) table(held uint64) (uint64, *pb.RouteTable) {
	routes := s.sdk.Caller().Table().Routes()
	if routes == nil {
		return 0, nil
	}
	if held == 0 || held >= routes.Version {
		return routes.Version, nil
	}
	return routes.Version, s.travelling(routes)
}

// travelling is a table as it travels. Its version does not tell it, since each era counts from the
// beginning.
type travelling struct {
	of   *seq.RouteTable
	wire *pb.RouteTable
}

// travelling converts each table once, not for each caller.
func (s *server) travelling(routes *seq.RouteTable) *pb.RouteTable {
	if t := s.routes.Load(); t != nil && t.of == routes {
		return t.wire
	}
	t := &travelling{routes, rpc.RoutesToProto(routes)}
	s.routes.Store(t)
	return t.wire
}

// Next implements pb.SequenceServer.
func (s *server) Next(ctx context.Context, r *pb.NextRequest) (*pb.NextReply, error) {
	rpc.OneIfNone(&r.Count)
	if err := seq.CheckCount("count", uint64(r.GetCount())); err != nil {
		return nil, err
	}
	key, place, err := s.admit(ctx, r.GetId(), r, func() error { return nil })
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	var got client.Range
	if r.RequestId != nil {
		got, err = s.sdk.TakeIdempotent(rpc.Relay(ctx), key, r.GetCount(), requestOf(r.RequestId, r.FirstSentMs))
	} else {
		got, err = s.sdk.Take(rpc.Relay(ctx), key, r.GetCount())
	}
	if err != nil {
		return nil, err
	}
	out := &pb.NextReply{First: uint64(got.First), Last: uint64(got.Last), Unordered: got.Unordered, Replayed: got.Replayed}
	out.RouteVersion, out.Routes = s.table(r.GetRouteVersion())
	return out, nil
}

// one is a request for one key.
type one interface {
	GetSpace() string
	GetUid() uint64
	GetKey() string
}

// admit returns the key of a request and a place for it. Here id is the oneof of the request, and check looks at
// its other fields.
func (s *server) admit(ctx context.Context, id any, r one, check func() error) (client.Key, *gate.Place, error) {
	key, err := keyOf(r.GetSpace(), id, r.GetUid(), r.GetKey())
	if err == nil {
		err = check()
	}
	if err != nil {
		return key, nil, err
	}
	place, err := s.door.one(ctx, key.Space, key.UID, r.GetKey())
	return key, place, err
}

// keyOf is the key of a request for one.
func keyOf(space string, id any, uid uint64, key string) (client.Key, error) {
	named, err := rpc.Named(id, key)
	if named {
		return client.StringKey(space, key), err
	}
	return client.Key{Space: space, UID: seq.UID(uid)}, err
}

// checked is a batch whose fields are sound.
type checked struct {
	space  string
	uids   []seq.UID
	names  []string // behind the uids
	counts []uint32
	once   []client.Request // none, or one a key
}

func (b checked) keys() int { return len(b.uids) + len(b.names) }

// countsOf are the counts of keys from to to; none if each is 1.
func (b checked) countsOf(from, to int) []uint32 {
	if len(b.counts) == 0 {
		return nil
	}
	return b.counts[from:to]
}

// onceOf are the requests of keys from to to; none if they have no ids.
func (b checked) onceOf(from, to int) []client.Request {
	if len(b.once) == 0 {
		return nil
	}
	return b.once[from:to]
}

// inKinds does what is asked for the UIDs, and then for the string keys, if there are any;
// they are the indices from from to to.
func (b checked) inKinds(do func(from, to int, named bool)) {
	if n := len(b.uids); n > 0 {
		do(0, n, false)
	}
	if len(b.names) > 0 {
		do(len(b.uids), b.keys(), true)
	}
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
			one.Counts, one.IDs, one.Sent = b.GetCounts(), b.GetRequestIds(), b.GetFirstSentMs()
		}
		if err := one.Check(i); err != nil {
			return nil, err
		}
		out[i] = checked{b.GetSpace(), seq.KeyHasher{}.Counters(seq.Batch{UIDs: one.UIDs}).UIDs, one.Keys, one.Counts, requestsOf(one)}
	}
	return out, nil
}

// enter checks the batches of a request and counts it among those in work, until leave is
// called, which may be done after an error, too.
func (s *server) enter(ctx context.Context, request []*pb.Batch, counted bool) (batches []checked, r *request, leave func(), err error) {
	if batches, err = checkBatches(request, counted); err != nil {
		return nil, nil, func() {}, err
	}
	r, leave, err = s.door.enter(ctx, batches, rpc.Load(request))
	return batches, r, leave, err
}

// BatchNext implements pb.SequenceServer.
func (s *server) BatchNext(ctx context.Context, r *pb.BatchNextRequest) (*pb.BatchNextReply, error) {
	out, leave, err := s.batchNext(ctx, r, nil)
	leave()
	return out, err
}

// batchNext passes early answers to part while keys of other Sets are pending. If part is nil, all
// answers come together.
func (s *server) batchNext(ctx context.Context, r *pb.BatchNextRequest, part func(*pb.BatchNextReply)) (*pb.BatchNextReply, func(), error) {
	batches, in, leave, err := s.enter(ctx, r.GetBatches(), true)
	if err != nil {
		return nil, leave, err
	}
	out := &pb.BatchNextReply{Results: make([]*pb.BatchResult, len(batches))}
	for i, b := range batches {
		out.Results[i] = newResult(b)
	}
	var early func()
	if part != nil {
		early = func() {
			in.mu.Lock()
			now := proto.CloneOf(out)
			in.mu.Unlock()
			part(now)
		}
	}
	relayed, end := in.time(rpc.Relay(ctx), part == nil)
	defer end()
	in.each(func(p piece, refused error) func() {
		got := s.ranges(relayed, p.checked, refused)
		return func() { fill(out.Results[p.batch], p, got) }
	}, early)
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, leave, err // the caller has left; the faults of keys have no code for that
	}
	out.RouteVersion, out.Routes = s.table(r.GetRouteVersion())
	return out, leave, nil
}

// newResult has room for the answers to a batch.
func newResult(b checked) *pb.BatchResult {
	out := &pb.BatchResult{First: make([]uint64, b.keys())}
	if slices.ContainsFunc(b.counts, func(n uint32) bool { return n > 1 }) {
		out.Last = make([]uint64, b.keys())
	}
	return out
}

// fill puts answers to the keys of a piece into the result of its batch.
func fill(out *pb.BatchResult, p piece, ranges []client.Range) {
	for k, r := range ranges {
		i := p.at(k)
		if r.Err != nil {
			out.Errors = append(out.Errors, rpc.ToKeyError(i, r.Err))
			continue
		}
		out.First[i] = uint64(r.First)
		if out.Last != nil {
			out.Last[i] = uint64(r.Last)
		}
		if r.Replayed {
			if out.Replayed == nil {
				out.Replayed = make([]bool, len(out.First))
			}
			out.Replayed[i] = true
		}
		out.Unordered = out.Unordered || r.Unordered
	}
}

// ranges sends a batch of one along with the single calls of others. With an error that is why none
// of its keys is asked for.
func (s *server) ranges(ctx context.Context, b checked, refused error) []client.Range {
	if refused != nil {
		return slices.Repeat([]client.Range{{Err: refused}}, b.keys())
	}
	if b.keys() == 1 {
		n := uint32(1)
		if len(b.counts) > 0 {
			n = b.counts[0]
		}
		key := client.Key{Space: b.space}
		if len(b.names) > 0 {
			key = client.StringKey(b.space, b.names[0])
		} else {
			key.UID = b.uids[0]
		}
		var r client.Range // r.Err has the error
		if len(b.once) > 0 {
			r, _ = s.sdk.TakeIdempotent(ctx, key, n, b.once[0])
		} else {
			r, _ = s.sdk.Take(ctx, key, n)
		}
		return []client.Range{r}
	}
	out := make([]client.Range, b.keys())
	b.inKinds(func(from, to int, named bool) {
		var got []client.Range
		var err error
		if named {
			got, err = s.sdk.NextKeysIdempotent(ctx, b.space, b.names, b.countsOf(from, to), b.onceOf(from, to))
		} else {
			got, err = s.sdk.NextBatchIdempotent(ctx, b.space, b.uids, b.countsOf(from, to), b.onceOf(from, to))
		}
		if len(got) == len(out) {
			out = got
		}
		copy(out[from:to], got)
		for i := from; err != nil && i < to; i++ {
			out[i].Err = err
		}
	})
	return out
}

// Current implements pb.SequenceServer.
func (s *server) Current(ctx context.Context, r *pb.CurrentRequest) (*pb.CurrentReply, error) {
	out, leave, err := s.current(ctx, r)
	leave()
	return out, err
}

func (s *server) current(ctx context.Context, r *pb.CurrentRequest) (*pb.CurrentReply, func(), error) {
	batches, in, leave, err := s.enter(ctx, r.GetBatches(), false)
	if err != nil {
		return nil, leave, err
	}
	out := &pb.CurrentReply{Results: make([]*pb.CurrentResult, len(batches))}
	for i, b := range batches {
		n := b.keys()
		out.Results[i] = &pb.CurrentResult{Values: make([]uint64, n), UpperBound: make([]bool, n), LastTakenUnix: make([]int64, n)}
	}
	relayed, end := in.time(rpc.Relay(ctx), true)
	defer end()
	in.each(func(p piece, refused error) func() {
		got := s.values(relayed, p.checked, refused)
		return func() { fillValues(out.Results[p.batch], p, got) }
	}, nil)
	out.RouteVersion, out.Routes = s.table(r.GetRouteVersion())
	return out, leave, nil
}

// values reads the keys of a batch. With an error that is why none of them is asked for.
func (s *server) values(ctx context.Context, b checked, refused error) []client.Value {
	values := make([]client.Value, b.keys())
	b.inKinds(func(from, to int, named bool) {
		var got []client.Value
		err := refused
		switch {
		case err != nil:
		case named:
			got, err = s.sdk.CurrentKeys(ctx, b.space, b.names)
		default:
			got, err = s.sdk.Current(ctx, b.space, b.uids)
		}
		copy(values[from:to], got)
		for i := from; err != nil && i < to; i++ {
			values[i].Err = err
		}
	})
	return values
}

// fillValues puts what was read of the keys of a piece into the result of its batch.
func fillValues(out *pb.CurrentResult, p piece, values []client.Value) {
	for k, v := range values {
		i := p.at(k)
		if v.Err != nil {
			out.Errors = append(out.Errors, rpc.ToKeyError(i, v.Err))
			continue
		}
		out.Values[i], out.UpperBound[i] = uint64(v.Seq), v.UpperBound
		if !v.LastTaken.IsZero() {
			out.LastTakenUnix[i] = v.LastTaken.Unix()
		}
	}
}

// Routes implements pb.SequenceServer. Of several Sets it gives the root's table, and the map,
// which says where the others are.
func (s *server) Routes(ctx context.Context, r *pb.RoutesRequest) (*pb.RoutesReply, error) {
	if err := s.sdk.Caller().Reach(ctx); err != nil {
		return nil, err
	}
	known := s.sdk.Sets()
	root := known.All[0]
	m, _ := s.sdk.Caller().Table().Mapping()
	out := &pb.RoutesReply{ClusterId: root.ClusterID, Set: root.Name, Mapping: rpc.MappingToProto(m), Zone: s.zone, Incarnation: rpc.IncarnationToProto(root.Incarnation)}
	out.RouteVersion, _ = s.table(0)
	if root.Routes != nil && r.GetRouteVersion() < root.Routes.Version {
		out.RouteVersion, out.Routes = root.Routes.Version, s.travelling(root.Routes)
	}
	if r.GetSetsVersion() < known.Map.Version {
		out.Sets = rpc.SetMapToProto(known.Map)
	}
	return out, nil
}

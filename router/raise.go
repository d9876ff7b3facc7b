package router

import (
	"context"
	"errors"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Raise implements pb.SequenceServer.
func (s *server) Raise(ctx context.Context, r *pb.RaiseRequest) (*pb.RaiseReply, error) {
	if err := seq.CheckFloor("at_least", r.GetAtLeast()); err != nil {
		return nil, err
	}
	key, err := keyOf(r.GetSpace(), r.GetId(), r.GetUid(), r.GetKey())
	if err != nil {
		return nil, err
	}
	place, err := s.inWork.Enter(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	var options []client.RaiseOption
	if r.GetForce() {
		options = append(options, client.Forced)
	}
	if r.GetMaxJump() > 0 {
		options = append(options, client.Within(r.GetMaxJump()))
	}
	value, err := s.sdk.Raise(rpc.Forwarding(rpc.Relay(ctx)), key, seq.Seq(r.GetAtLeast()), options...)
	if err != nil {
		return nil, err
	}
	out := &pb.RaiseReply{Value: uint64(value)}
	out.RouteVersion, out.Routes = s.table(r.GetRouteVersion())
	return out, nil
}

// BatchRaise implements pb.SequenceServer.
func (s *server) BatchRaise(ctx context.Context, r *pb.BatchRaiseRequest) (*pb.BatchRaiseReply, error) {
	keys, err := rpc.RaisedKeys(r.GetBatches())
	if err != nil {
		return nil, err
	}
	place, err := s.inWork.Enter(ctx, keys)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	out := &pb.BatchRaiseReply{Results: make([]*pb.RaiseResult, len(r.GetBatches()))}
	relayed := rpc.Relay(ctx)
	inParallel(len(out.Results), func(i int) { out.Results[i] = s.raiseBatch(relayed, r.GetBatches()[i]) })
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, err
	}
	out.RouteVersion, out.Routes = s.table(r.GetRouteVersion())
	return out, nil
}

func (s *server) raiseBatch(ctx context.Context, b *pb.RaiseBatch) *pb.RaiseResult {
	var options []client.RaiseOption
	if b.GetMaxJump() > 0 {
		options = append(options, client.Within(b.GetMaxJump()))
	}
	out := &pb.RaiseResult{Values: make([]uint64, len(b.GetAtLeast()))}
	floors := make([]seq.Seq, len(b.GetAtLeast()))
	for i, floor := range b.GetAtLeast() {
		floors[i] = seq.Seq(floor)
	}
	keys := checked{uids: seq.KeyHasher{}.Counters(seq.Batch{UIDs: b.GetUids()}).UIDs, names: b.GetKeys()}
	keys.inKinds(func(from, to int, named bool) {
		var got []client.Raised
		var err error
		if named {
			got, err = s.sdk.RaiseKeys(ctx, b.GetSpace(), keys.names, floors[from:to], options...)
		} else {
			got, err = s.sdk.RaiseBatch(ctx, b.GetSpace(), keys.uids, floors[from:to], options...)
		}
		for i := from; i < to; i++ {
			one := client.Raised{Err: err}
			if err == nil {
				one = got[i-from]
			}
			if out.Values[i] = uint64(one.Seq); one.Err != nil {
				out.Errors = append(out.Errors, rpc.ToKeyError(i, one.Err))
			}
		}
	})
	return out
}

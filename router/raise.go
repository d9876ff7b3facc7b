package router

import (
	"context"
	"errors"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Raise implements pb.SequenceServer.
func (s *server) Raise(ctx context.Context, r *pb.RaiseRequest) (*pb.RaiseReply, error) {
	key, place, err := s.admit(ctx, r.GetId(), r, func() error { return seq.CheckFloor("at_least", r.GetAtLeast()) })
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
	batches := make([]checked, len(r.GetBatches()))
	out := &pb.BatchRaiseReply{Results: make([]*pb.RaiseResult, len(batches))}
	for i, b := range r.GetBatches() {
		batches[i] = checked{space: b.GetSpace(), uids: seq.KeyHasher{}.Counters(seq.Batch{UIDs: b.GetUids()}).UIDs, names: b.GetKeys()}
		out.Results[i] = &pb.RaiseResult{Values: make([]uint64, len(b.GetAtLeast()))}
	}
	in, leave, err := s.door.enter(ctx, batches, keys)
	if err != nil {
		return nil, err
	}
	defer leave()
	relayed, end := in.time(rpc.Relay(ctx), true)
	defer end()
	in.each(func(p piece, refused error) func() {
		got := s.raised(relayed, p, r.GetBatches()[p.batch], refused)
		return func() { fillRaised(out.Results[p.batch], p, got) }
	}, nil)
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, err
	}
	out.RouteVersion, out.Routes = s.table(r.GetRouteVersion())
	return out, nil
}

// raised raises the keys of a piece of a batch. With an error that is why none of them is asked for.
func (s *server) raised(ctx context.Context, p piece, of *pb.RaiseBatch, refused error) []client.Raised {
	var options []client.RaiseOption
	if of.GetMaxJump() > 0 {
		options = append(options, client.Within(of.GetMaxJump()))
	}
	floors := make([]seq.Seq, p.keys())
	for k := range floors {
		floors[k] = seq.Seq(of.GetAtLeast()[p.at(k)])
	}
	out := make([]client.Raised, p.keys())
	p.inKinds(func(from, to int, named bool) {
		var got []client.Raised
		err := refused
		switch {
		case err != nil:
		case named:
			got, err = s.sdk.RaiseKeys(ctx, p.space, p.names, floors[from:to], options...)
		default:
			got, err = s.sdk.RaiseBatch(ctx, p.space, p.uids, floors[from:to], options...)
		}
		copy(out[from:to], got)
		for k := from; err != nil && k < to; k++ {
			out[k].Err = err
		}
	})
	return out
}

// fillRaised puts what became of the keys of a piece into the result of its batch.
func fillRaised(out *pb.RaiseResult, p piece, raised []client.Raised) {
	for k, one := range raised {
		i := p.at(k)
		if out.Values[i] = uint64(one.Seq); one.Err != nil {
			out.Errors = append(out.Errors, rpc.ToKeyError(i, one.Err))
		}
	}
}

package router

import (
	"context"
	"math"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Open implements pb.SequenceServer. The caller counts the life of the ticket from its own sending, which is
// before the router's.
func (s *server) Open(ctx context.Context, r *pb.OpenRequest) (*pb.OpenReply, error) {
	rpc.OneIfNone(&r.Count)
	if err := seq.CheckCount("count", uint64(r.GetCount())); err != nil {
		return nil, err
	}
	key, place, err := s.admit(ctx, r.GetId(), r, func() error { return nil })
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	var options []client.OpenOption
	if r.GetLifeMs() > 0 {
		options = append(options, client.WithLife(time.Duration(min(r.GetLifeMs(), math.MaxInt32))*time.Millisecond))
	}
	if r.RequestId != nil {
		options = append(options, client.OpenedOnce(requestOf(r.RequestId, r.GetFirstSentMs())))
	}
	got, err := s.sdk.Open(rpc.Relay(ctx), key, r.GetCount(), options...)
	if err != nil {
		return nil, err
	}
	out := &pb.OpenReply{First: uint64(got.First), Last: uint64(got.Last), Ticket: got.ID, LifeMs: uint64(got.Life.Milliseconds()), Replayed: got.Replayed}
	out.RouteVersion, out.Routes = s.table(r.GetRouteVersion())
	return out, nil
}

// Done implements pb.SequenceServer.
func (s *server) Done(ctx context.Context, r *pb.DoneRequest) (*pb.DoneReply, error) {
	key, place, err := s.admit(ctx, r.GetId(), r, func() error { return seq.CheckTicket(r.GetFirst(), r.GetTicket()) })
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	if err := s.sdk.Caller().Done(rpc.Relay(ctx), key, seq.Seq(r.GetFirst()), r.GetTicket(), r.GetCancelled()); err != nil {
		return nil, err
	}
	out := &pb.DoneReply{}
	out.RouteVersion, out.Routes = s.table(r.GetRouteVersion())
	return out, nil
}

// Mark implements pb.SequenceServer.
func (s *server) Mark(ctx context.Context, r *pb.MarkRequest) (*pb.MarkReply, error) {
	batches, in, leave, err := s.enter(ctx, r.GetBatches(), false)
	defer leave()
	if err != nil {
		return nil, err
	}
	out := &pb.MarkReply{Results: make([]*pb.MarkResult, len(batches))}
	for i, b := range batches {
		n := b.keys()
		out.Results[i] = &pb.MarkResult{Marks: make([]uint64, n), Fences: make([]uint64, n), Last: make([]uint64, n), UnknownMs: make([]uint32, n)}
	}
	relayed, end := in.time(rpc.Relay(ctx), true)
	defer end()
	in.each(func(p piece, refused error) func() {
		got := s.marks(relayed, p.checked, refused)
		return func() { fillMarks(out.Results[p.batch], p, got) }
	}, nil)
	out.RouteVersion, out.Routes = s.table(r.GetRouteVersion())
	return out, nil
}

// marks reads the marks of a batch. With an error that is why none of its keys is asked for.
func (s *server) marks(ctx context.Context, b checked, err error) []client.Mark {
	keys := make([]client.Key, 0, b.keys())
	for _, uid := range b.uids {
		keys = append(keys, client.Key{Space: b.space, UID: uid})
	}
	for _, name := range b.names {
		keys = append(keys, client.StringKey(b.space, name))
	}
	var marks []client.Mark
	if err == nil {
		marks, err = s.sdk.Marks(ctx, keys...)
	}
	if err != nil {
		marks = make([]client.Mark, len(keys))
		for i := range marks {
			marks[i].Err = err
		}
	}
	return marks
}

// fillMarks puts the marks of the keys of a piece into the result of its batch.
func fillMarks(out *pb.MarkResult, p piece, marks []client.Mark) {
	for k, m := range marks {
		i := p.at(k)
		if m.Err != nil {
			out.Errors = append(out.Errors, rpc.ToKeyError(i, m.Err))
			continue
		}
		out.Marks[i], out.Fences[i], out.Last[i] = uint64(m.Seq), uint64(m.Fence), uint64(m.Last)
		out.UnknownMs[i] = unknownMs(m.KnownIn)
	}
}

package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Open implements pb.SequenceServer.
func (s *Sequence) Open(ctx context.Context, req *pb.OpenRequest) (*pb.OpenReply, error) {
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
	life, err := space.TicketLife(req.LifeMs)
	if err != nil {
		return nil, err
	}
	ctx, leave, err := s.enterOne(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	got, ids := s.Sections.Open(ctx, space, key.Alone(), []uint32{req.Count}, requests, life)
	if len(got.Faults) > 0 {
		return nil, refusal(got.Faults[0].Err)
	}
	reply := &pb.OpenReply{First: got.First[0], Last: got.Last[0], Ticket: ids[0], LifeMs: uint64(life.Milliseconds()), Replayed: len(got.Replayed) > 0 && got.Replayed[0]}
	reply.RouteVersion, reply.Routes = s.routesFor(req.RouteVersion)
	return reply, nil
}

// Done implements pb.SequenceServer.
func (s *Sequence) Done(ctx context.Context, req *pb.DoneRequest) (*pb.DoneReply, error) {
	space, key, err := s.counter(ctx, req.Space, req.Id, req, func() error { return seq.CheckTicket(req.First, req.Ticket) })
	if err != nil {
		return nil, err
	}
	if err := space.GivesTickets(); err != nil {
		return nil, err
	}
	ctx, leave, err := s.enterOne(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	ended := []section.Ticket{{First: req.First, ID: req.Ticket, Cancelled: req.Cancelled}}
	if faults := s.Sections.End(ctx, space, key.Alone(), ended); len(faults) > 0 {
		return nil, faults[0].Err
	}
	reply := &pb.DoneReply{}
	reply.RouteVersion, reply.Routes = s.routesFor(req.RouteVersion)
	return reply, nil
}

// Mark implements pb.SequenceServer.
func (s *Sequence) Mark(ctx context.Context, req *pb.MarkRequest) (*pb.MarkReply, error) {
	place, err := s.enter(ctx, req.Batches)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	ctx, cancel := bounded(ctx)
	defer cancel()
	hashes := rpc.HashesKeys(ctx)
	reply := &pb.MarkReply{Results: make([]*pb.MarkResult, len(req.Batches))}
	for i, b := range req.Batches {
		space, keys, err := s.countersOf(hashes, i, b.Space, seq.Batch{UIDs: b.Uids, Keys: b.Keys})
		if err == nil && !req.Kept {
			if err = space.GivesTickets(); err != nil {
				err = fmt.Errorf("batches[%d]: %w", i, err)
			}
		}
		if errors.Is(err, seq.ErrUnknownSpace) || errors.Is(err, seq.ErrNoTickets) {
			n := len(b.Uids) + len(b.Keys)
			reply.Results[i] = &pb.MarkResult{Marks: make([]uint64, n), Fences: make([]uint64, n), Last: make([]uint64, n), UnknownMs: make([]uint32, n), Errors: rpc.ErrorOfAll(err, n)}
			continue
		}
		if err != nil {
			return nil, err
		}
		marks, faults := s.Sections.Marks(ctx, space, keys)
		result := &pb.MarkResult{Errors: keyErrors(faults)}
		for _, m := range marks {
			result.Marks, result.Fences, result.Last = append(result.Marks, m.Value), append(result.Fences, m.Fence), append(result.Last, m.Last)
			result.UnknownMs = append(result.UnknownMs, millis(m.Unknown))
		}
		if req.Kept {
			for _, k := range s.Sections.Kept(space, keys) {
				result.Kept = append(result.Kept, &pb.KeptForReaders{Tickets: uint32(k.Tickets), EndsInMs: millis(k.EndsIn), Watches: uint32(k.Watches)})
			}
		}
		reply.Results[i] = result
	}
	reply.RouteVersion, reply.Routes = s.routesFor(req.RouteVersion)
	return reply, nil
}

// millis rounds up.
func millis(d time.Duration) uint32 { return uint32((d + time.Millisecond - 1) / time.Millisecond) }

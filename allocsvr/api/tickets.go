package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

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

// openParallel is the number of batches of one message that are opened in parallel.
const openParallel = 16

// batchesOf returns the keys of a TicketsRequest.
func batchesOf(r *pb.TicketsRequest) (all []*pb.Batch) {
	for _, b := range r.GetOpens() {
		all = append(all, b.GetKeys())
	}
	for _, b := range r.GetDones() {
		all = append(all, b.GetKeys())
	}
	return all
}

// loadOf is what a TicketsRequest weighs in work.
func loadOf(r *pb.TicketsRequest) int { return rpc.Load(batchesOf(r)) }

// tickets carries out the calls of a message. It fails for a message that is malformed, of which it does nothing.
func (s *Sequence) tickets(ctx context.Context, hashes bool, req *pb.TicketsRequest) (*pb.TicketsReply, error) {
	all := batchesOf(req)
	if err := seq.CheckKeys("opens and dones", rpc.Keys(all)); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(all, func(b *pb.Batch) bool { return len(b.GetUids())+len(b.GetKeys()) == 0 }) {
		return nil, fmt.Errorf("%w: a batch without keys", seq.ErrBadBatch)
	}
	var opens []func()
	reply := &pb.TicketsReply{Opens: make([]*pb.OpenResult, len(req.Opens)), Dones: make([]*pb.DoneResult, len(req.Dones))}
	var dones []func()
	for i, b := range req.Dones {
		do, err := s.endBatch(ctx, hashes, i, b, &reply.Dones[i])
		if err != nil {
			return nil, err
		}
		dones = append(dones, do)
	}
	for i, b := range req.Opens {
		do, err := s.openBatch(ctx, hashes, i, b, &reply.Opens[i])
		if err != nil {
			return nil, err
		}
		opens = append(opens, do)
	}
	for _, do := range dones {
		do()
	}
	var work errgroup.Group // one may wait for another quorum, or log
	work.SetLimit(openParallel)
	for i, do := range opens {
		if i < len(opens)-1 {
			work.Go(func() error { do(); return nil })
		} else {
			do()
		}
	}
	_ = work.Wait() // the results have their errors
	reply.RouteVersion, reply.Routes = s.routesFor(req.RouteVersion)
	return reply, nil
}

// openBatch checks a batch of Opens, and returns the function that carries it out.
func (s *Sequence) openBatch(ctx context.Context, hashes bool, at int, b *pb.OpenBatch, out **pb.OpenResult) (do func(), err error) {
	k := b.GetKeys()
	n := len(k.GetUids()) + len(k.GetKeys())
	refused := func(err error) func() {
		return func() {
			*out = &pb.OpenResult{Numbers: &pb.BatchResult{First: make([]uint64, n), Errors: rpc.ErrorOfAll(err, n)}, Tickets: make([]uint64, n)}
		}
	}
	space, keys, err := s.countersOf(hashes, at, k.GetSpace(), seq.Batch{UIDs: k.GetUids(), Keys: k.GetKeys(), Counts: k.GetCounts(), IDs: k.GetRequestIds(), Sent: k.GetFirstSentMs()})
	if errors.Is(err, seq.ErrUnknownSpace) {
		return refused(err), nil
	}
	if err != nil {
		return nil, err
	}
	requests, err := requestsOf(space, k.GetRequestIds(), k.GetFirstSentMs())
	if err != nil {
		return refused(err), nil
	}
	life, err := space.TicketLife(b.GetLifeMs())
	if err != nil {
		return refused(err), nil
	}
	if s.Sections.Away(space, keys) {
		return func() { *out = &pb.OpenResult{Apart: true} }, nil
	}
	return func() {
		got, ids := s.Sections.Open(ctx, space, keys, k.GetCounts(), requests, life)
		r := &pb.BatchResult{First: got.First, Errors: keyErrors(got.Faults), Replayed: got.Replayed}
		if &got.Last[0] != &got.First[0] {
			r.Last = got.Last
		}
		*out = &pb.OpenResult{Numbers: r, Tickets: ids, LifeMs: uint64(life.Milliseconds())}
	}, nil
}

// endBatch checks a batch of Dones, and returns the function that carries it out.
func (s *Sequence) endBatch(ctx context.Context, hashes bool, at int, b *pb.DoneBatch, out **pb.DoneResult) (do func(), err error) {
	k := b.GetKeys()
	n := len(k.GetUids()) + len(k.GetKeys())
	if len(b.GetFirst()) != n || len(b.GetTickets()) != n || len(b.GetCancelled()) != 0 && len(b.GetCancelled()) != n {
		return nil, fmt.Errorf("%w: dones[%d]: %d numbers, %d tickets and %d cancelled for %d keys", seq.ErrBadBatch, at, len(b.GetFirst()), len(b.GetTickets()), len(b.GetCancelled()), n)
	}
	ended := make([]section.Ticket, n)
	for i := range ended {
		ended[i] = section.Ticket{First: b.First[i], ID: b.Tickets[i], Cancelled: len(b.Cancelled) > 0 && b.Cancelled[i]}
		if err := seq.CheckTicket(ended[i].First, ended[i].ID); err != nil {
			return nil, fmt.Errorf("dones[%d]: index %d: %w", at, i, err)
		}
	}
	space, keys, err := s.countersOf(hashes, at, k.GetSpace(), seq.Batch{UIDs: k.GetUids(), Keys: k.GetKeys()})
	if err == nil {
		err = space.GivesTickets()
	}
	if errors.Is(err, seq.ErrUnknownSpace) || errors.Is(err, seq.ErrNoTickets) {
		refused := &pb.DoneResult{Errors: rpc.ErrorOfAll(err, n)}
		return func() { *out = refused }, nil
	}
	if err != nil {
		return nil, err
	}
	if s.Sections.Away(space, keys) {
		return func() { *out = &pb.DoneResult{Apart: true} }, nil
	}
	return func() { *out = &pb.DoneResult{Errors: keyErrors(s.Sections.End(ctx, space, keys, ended))} }, nil
}

// millis rounds up.
func millis(d time.Duration) uint32 { return uint32((d + time.Millisecond - 1) / time.Millisecond) }

package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// sequenceStream is one Stream.
type sequenceStream struct {
	s       *Sequence
	hashes  bool // the caller hashes string keys itself
	out     streamOut
	places  atomic.Int64 // taken, one for each call that waits; the limit is Limits
	waiting sync.WaitGroup

	spare *nextCall // for the next call; used by the goroutine that reads
	reply pb.StreamReply
	next  pb.StreamReply_Next
}

// Stream implements pb.SequenceServer. The goroutine that reads answers a call that need not wait. While it
// is busy it reads no further call, so a caller that is too fast slows down. Calls that must wait have
// goroutines of their own.
func (s *Sequence) Stream(stream grpc.BidiStreamingServer[pb.StreamRequest, pb.StreamReply]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	t := &sequenceStream{s: s, hashes: rpc.HashesKeys(ctx), out: streamOut{stream: stream}}
	defer t.waiting.Wait()
	defer cancel()
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			t.waiting.Wait() // the caller has closed its side and still wants its answers
			return nil
		}
		if err != nil {
			return err
		}
		switch call := req.Call.(type) {
		case *pb.StreamRequest_Next:
			err = t.takes(ctx, req, call.Next)
		case *pb.StreamRequest_Current:
			err = t.reads(ctx, req, call.Current)
		case *pb.StreamRequest_Tickets:
			err = t.tickets(ctx, req, call.Tickets)
		default:
			err = t.fails(req, fmt.Errorf("%w: a call of no known kind", seq.ErrBadArgument))
		}
		if err != nil {
			return err
		}
	}
}

// takes answers a BatchNext. An error ends the stream.
func (t *sequenceStream) takes(ctx context.Context, req *pb.StreamRequest, next *pb.BatchNextRequest) error {
	call := t.spare
	if t.spare = nil; call == nil {
		call = &nextCall{}
	}
	if err := call.begin(t.s, t.hashes, next); err != nil {
		return t.fails(req, err)
	}
	if call.settled() {
		t.next.Next = call.reply(ctx)
		t.reply.Id, t.reply.Result = req.Id, &t.next
		t.spare = call // sent is serialised: the room is free again
		return t.out.send(&t.reply)
	}
	finish := func(ctx context.Context) error {
		return t.out.send(&pb.StreamReply{Id: req.Id, Result: &pb.StreamReply_Next{Next: call.reply(ctx)}})
	}
	place, err := t.admit(ctx, rpc.Load(next.Batches))
	if err != nil {
		// As after a deadline, the numbers taken so far are sent, and the other keys are refused.
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(err)
		return finish(ctx)
	}
	if early, ok := call.early(); ok && req.Parts {
		reply := &pb.StreamReply{Id: req.Id, More: true, Result: &pb.StreamReply_Next{Next: early}}
		if err := t.out.send(reply); err != nil {
			t.leave(place)
			return err
		}
	}
	t.wait(ctx, req, place, finish)
	return nil
}

// reads answers a Current, which may wait for its sections.
func (t *sequenceStream) reads(ctx context.Context, req *pb.StreamRequest, current *pb.CurrentRequest) error {
	place, err := t.admit(ctx, 0)
	if err != nil {
		return t.fails(req, err)
	}
	t.wait(ctx, req, place, func(ctx context.Context) error {
		reply, err := t.s.Current(ctx, current) // counts its keys itself
		if err != nil {
			return t.fails(req, err)
		}
		return t.out.send(&pb.StreamReply{Id: req.Id, Result: &pb.StreamReply_Current{Current: reply}})
	})
	return nil
}

// tickets opens and ends tickets, which may wait for a step or a quorum.
func (t *sequenceStream) tickets(ctx context.Context, req *pb.StreamRequest, call *pb.TicketsRequest) error {
	place, err := t.admit(ctx, loadOf(call))
	if err != nil {
		return t.fails(req, err)
	}
	t.wait(ctx, req, place, func(ctx context.Context) error {
		reply, err := t.s.tickets(ctx, t.hashes, call)
		if err != nil {
			return t.fails(req, err)
		}
		return t.out.send(&pb.StreamReply{Id: req.Id, Result: &pb.StreamReply_Tickets{Tickets: reply}})
	})
	return nil
}

// admit takes a place for a call that waits, and leave gives it back. Other calls take no place, so
// sections that are away do not hold them up.
func (t *sequenceStream) admit(ctx context.Context, keys int) (*gate.Place, error) {
	place, err := t.s.Limits.inWork.Try(ctx, keys)
	if err != nil {
		return nil, err
	}
	if err := t.s.Limits.streamFull(t.places.Add(1)); err != nil {
		t.leave(place)
		return nil, err
	}
	return place, nil
}

func (t *sequenceStream) leave(place *gate.Place) {
	t.places.Add(-1)
	place.Leave()
}

// wait runs the rest of an admitted call in a goroutine, until the caller's time is up. It drops finish's
// error, because a broken stream also ends Recv.
func (t *sequenceStream) wait(ctx context.Context, req *pb.StreamRequest, place *gate.Place, finish func(context.Context) error) {
	limit := defaultWait
	if req.TimeoutMs > 0 {
		limit = time.Duration(req.TimeoutMs) * time.Millisecond
	}
	t.waiting.Go(func() {
		defer t.leave(place)
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_ = finish(ctx)
	})
}

// fails answers a call with an error.
func (t *sequenceStream) fails(req *pb.StreamRequest, err error) error {
	return t.out.send(&pb.StreamReply{Id: req.Id, Result: &pb.StreamReply_Error{Error: rpc.ToKeyError(0, err)}})
}

// streamOut sends for one goroutine at a time. When send returns, the reply has been serialised.
type streamOut struct {
	mu     sync.Mutex // guards stream.Send
	stream grpc.BidiStreamingServer[pb.StreamRequest, pb.StreamReply]
}

func (o *streamOut) send(reply *pb.StreamReply) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stream.Send(reply)
}

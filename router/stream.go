package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// streamTimeout is the timeout of a StreamRequest without one, by the contract.
const streamTimeout = 5 * time.Second

// maxInFlight bounds the requests of one stream that came within placeTime and are being forwarded,
// or whose replies are being sent. At the bound the router stops reading, so that the caller feels
// back-pressure. A request in work for longer than placeTime waits for something else, such as a
// dead Set, and must not block later ones. The admission bounds all requests.
const (
	maxInFlight = 256
	placeTime   = 20 * time.Millisecond
)

// Stream implements pb.SequenceServer: requests are forwarded as they come and
// answered in any order. When the router leaves, those in flight are answered first.
func (s *server) Stream(stream grpc.BidiStreamingServer[pb.StreamRequest, pb.StreamReply]) error {
	requests := make(chan *pb.StreamRequest)
	ended := make(chan error, 1)
	// The reader ends with the stream's context at the latest.
	go func() {
		for {
			r, err := stream.Recv()
			if err != nil {
				ended <- err
				return
			}
			select {
			case requests <- r:
			case <-stream.Context().Done():
				return
			}
		}
	}()
	var inFlight sync.WaitGroup
	defer inFlight.Wait()
	var sendMu sync.Mutex // guards stream.Send
	places := make(chan struct{}, maxInFlight)
	for {
		select {
		case <-s.leaving:
			return seq.ErrShuttingDown
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case r := <-requests:
			// A place that is not given back before comes back when the reply is sent: a caller
			// that reads no replies is not read either.
			select {
			case <-s.leaving:
				return seq.ErrShuttingDown
			case <-stream.Context().Done():
				return stream.Context().Err()
			case places <- struct{}{}:
			}
			inFlight.Go(func() {
				var once sync.Once
				giveBack := func() { once.Do(func() { <-places }) }
				defer giveBack()
				long := time.AfterFunc(placeTime, giveBack)
				send := func(reply *pb.StreamReply) {
					sendMu.Lock()
					defer sendMu.Unlock()
					_ = stream.Send(reply) // a lost stream is seen by the reader
				}
				reply, leave := s.answer(stream.Context(), r, send)
				defer leave()
				long.Stop()
				r = nil // a reply may wait for long, and its request is larger
				send(reply)
			})
		}
	}
}

// answer forwards one request of a stream within its timeout, and sends parts of the answer, if its
// caller takes them. It stays among those in work until leave is called.
func (s *server) answer(ctx context.Context, r *pb.StreamRequest, send func(*pb.StreamReply)) (reply *pb.StreamReply, leave func()) {
	limit := streamTimeout
	if r.GetTimeoutMs() > 0 {
		limit = time.Duration(r.GetTimeoutMs()) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reply, leave = &pb.StreamReply{Id: r.GetId()}, func() {}
	var err error
	switch call := r.GetCall().(type) {
	case *pb.StreamRequest_Next:
		var next *pb.BatchNextReply
		var part func(*pb.BatchNextReply)
		if id := r.GetId(); r.GetParts() {
			part = func(early *pb.BatchNextReply) {
				send(&pb.StreamReply{Id: id, More: true, Result: &pb.StreamReply_Next{Next: early}})
			}
		}
		if next, leave, err = s.batchNext(ctx, call.Next, part); err == nil {
			reply.Result = &pb.StreamReply_Next{Next: next}
		}
	case *pb.StreamRequest_Current:
		var current *pb.CurrentReply
		if current, leave, err = s.current(ctx, call.Current); err == nil {
			reply.Result = &pb.StreamReply_Current{Current: current}
		}
	default:
		err = fmt.Errorf("%w: neither next nor current is set", seq.ErrBadArgument)
	}
	if err != nil {
		reply.Result = &pb.StreamReply_Error{Error: rpc.ToKeyError(0, err)}
	}
	return reply, leave
}

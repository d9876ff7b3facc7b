package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// maxStreamCalls bounds the calls in flight on one stream; more are answered with
// seq.ErrOverloaded, so that a fast caller cannot grow the server's memory.
const maxStreamCalls = 1024

// Stream implements pb.SequenceServer. A call that needs no waiting is answered at
// once, by the goroutine that reads; the others wait in goroutines of their own.
func (s sequenceServer) Stream(stream grpc.BidiStreamingServer[pb.StreamRequest, pb.StreamReply]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	out := &streamOut{stream: stream}
	slots := make(chan struct{}, maxStreamCalls)
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			waiting.Wait() // the caller has closed its side and still wants its answers
			return nil
		}
		if err != nil {
			return err
		}
		finish, settled := s.start(req)
		if !settled {
			select {
			case slots <- struct{}{}:
				waiting.Go(func() {
					defer func() { <-slots }()
					_ = out.send(finish(ctx)) // a broken stream ends Recv as well
				})
				continue
			default: // a deadline that is over: what was taken is answered, the rest refused
				finish = s.refuse(req, finish)
			}
		}
		if err := out.send(finish(ctx)); err != nil {
			return err
		}
	}
}

// start begins a call; settled says that finish will not wait.
func (s sequenceServer) start(req *pb.StreamRequest) (finish func(context.Context) *pb.StreamReply, settled bool) {
	wait := defaultWait
	if req.TimeoutMs > 0 {
		wait = time.Duration(req.TimeoutMs) * time.Millisecond
	}
	switch call := req.Call.(type) {
	case *pb.StreamRequest_Next:
		next, err := s.begin(call.Next)
		if err != nil {
			return answer(failed(req.Id, err)), true
		}
		return func(ctx context.Context) *pb.StreamReply {
			ctx, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			return &pb.StreamReply{Id: req.Id, Result: &pb.StreamReply_Next{Next: next.reply(ctx)}}
		}, next.settled()
	case *pb.StreamRequest_Current:
		return func(ctx context.Context) *pb.StreamReply {
			ctx, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			reply, err := s.Current(ctx, call.Current)
			if err != nil {
				return failed(req.Id, err)
			}
			return &pb.StreamReply{Id: req.Id, Result: &pb.StreamReply_Current{Current: reply}}
		}, false
	}
	return answer(failed(req.Id, fmt.Errorf("%w: a call of no known kind", seq.ErrBadArgument))), true
}

func answer(reply *pb.StreamReply) func(context.Context) *pb.StreamReply {
	return func(context.Context) *pb.StreamReply { return reply }
}

// refuse finishes a call without waiting, since too many wait already.
func (s sequenceServer) refuse(req *pb.StreamRequest, finish func(context.Context) *pb.StreamReply) func(context.Context) *pb.StreamReply {
	if req.GetNext() == nil {
		return answer(failed(req.Id, seq.ErrOverloaded))
	}
	return func(ctx context.Context) *pb.StreamReply {
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(seq.ErrOverloaded)
		return finish(ctx)
	}
}

func failed(id uint64, err error) *pb.StreamReply {
	return &pb.StreamReply{Id: id, Result: &pb.StreamReply_Error{Error: rpc.ToKeyError(0, err)}}
}

// streamOut lets one goroutine at a time send.
type streamOut struct {
	mu     sync.Mutex // guards stream.Send
	stream grpc.BidiStreamingServer[pb.StreamRequest, pb.StreamReply]
}

func (o *streamOut) send(reply *pb.StreamReply) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stream.Send(reply)
}

package gate

import (
	"context"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// handlers counts the messages that come to its handlers.
type handlers struct {
	pb.UnimplementedSequenceServer
	pb.UnimplementedAdminServer
	calls atomic.Int64
}

func (h *handlers) BatchNext(context.Context, *pb.BatchNextRequest) (*pb.BatchNextReply, error) {
	h.calls.Add(1)
	return &pb.BatchNextReply{}, nil
}

func (h *handlers) Status(context.Context, *pb.StatusRequest) (*pb.StatusReply, error) {
	return &pb.StatusReply{}, nil
}

func (h *handlers) Stream(stream grpc.BidiStreamingServer[pb.StreamRequest, pb.StreamReply]) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		h.calls.Add(1)
		if err := stream.Send(&pb.StreamReply{Id: r.GetId()}); err != nil {
			return err
		}
	}
}

func TestMessagesWaitForTheirTurnsBeforeTheyAreUnpacked(t *testing.T) {
	srv, h := NewServer(ServerConfig{}), &handlers{}
	pb.RegisterSequenceServer(srv, h)
	pb.RegisterAdminServer(srv, h)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = srv.Serve(lis) }()
	t.Cleanup(srv.Stop)
	conn, err := rpc.Dial(lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	turns, client := srv.guard.turns, pb.NewSequenceClient(conn)
	turns.mu.Lock()
	turns.looking = true // no call is taken for one that waits for something else
	turns.mu.Unlock()
	large := &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: make([]uint64, seq.MaxBatch)}}}
	for i := range large.Batches[0].Uids {
		large.Batches[0].Uids[i] = 1 << 40
	}
	stream, err := client.Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"a call": func() error {
			_, err := client.BatchNext(ctx, large)
			return err
		},
		"a message of a stream": func() error {
			if err := stream.Send(&pb.StreamRequest{Call: &pb.StreamRequest_Next{Next: large}}); err != nil {
				return err
			}
			_, err := stream.Recv()
			return err
		},
	} {
		var others []*Place
		for range 2 * runtime.GOMAXPROCS(0) {
			p, err := turns.take(ctx, "other", seq.MaxBatch)
			if err != nil {
				t.Fatal(err)
			}
			others = append(others, p)
		}
		before, done := h.calls.Load(), make(chan error, 1)
		go func() { done <- call() }()
		for turns.Waiting() == 0 && h.calls.Load() == before && ctx.Err() == nil {
			runtime.Gosched()
		}
		if n := h.calls.Load() - before; n != 0 || turns.Waiting() != 1 {
			t.Errorf("%s: %d were handled and %d wait, want it to wait", name, n, turns.Waiting())
		}
		if _, err := pb.NewAdminClient(conn).Status(ctx, &pb.StatusRequest{}); err != nil {
			t.Errorf("%s: an operator's call beside it: %v", name, err)
		}
		for _, p := range others {
			p.Leave()
		}
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for turns.begunKeys() > 0 && ctx.Err() == nil {
		runtime.Gosched()
	}
	if n := turns.begunKeys(); n > 0 {
		t.Errorf("%d keys are in work after all calls have ended", n)
	}
}

func (a *Admission) begunKeys() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.begun
}

package sim

import (
	"context"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// storeLine is a stream to a store, as its client has it. Its calls travel as calls of their methods, and each
// meets faults of its own, so they overtake each other more than calls on a stream do. The first call that the
// transport fails ends the stream, as a connection that breaks does, and no other is answered.
type storeLine struct {
	grpc.ClientStream // nil, because no other method is called
	c                 *conn
	ctx               context.Context
	over              context.Context // of the process
	answers           chan *pb.StoreAnswer
	broken            chan error // of one place
	first             *pb.StoreCalls
}

// lineTo opens a stream to a store, if the run has any.
func (c *conn) lineTo(ctx context.Context) (grpc.ClientStream, error) {
	if !c.w.opts.Streams {
		return nil, status.Error(codes.Unimplemented, "a store of a build before streams")
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if !c.from.up || c.from.life != c.life {
		return nil, status.Error(codes.Unavailable, "the process has ended")
	}
	return &storeLine{c: c, ctx: ctx, over: c.from.ctx, answers: make(chan *pb.StoreAnswer), broken: make(chan error, 1)}, nil
}

// SendMsg implements grpc.ClientStream.
func (l *storeLine) SendMsg(m any) error {
	calls := m.(*pb.StoreCalls)
	if l.first == nil {
		l.first = calls
	}
	for _, call := range calls.GetCalls() {
		name, req := pb.Store_Read_FullMethodName, proto.Message(call.GetRead())
		if step := call.GetStep(); step != nil {
			step = proto.CloneOf(step)
			step.Session, step.Secret, step.Node, step.Seed = l.first.GetSession(), l.first.GetSecret(), l.first.GetNode(), l.first.GetSeed()
			name, req = pb.Store_Step_FullMethodName, step
		}
		if err := l.start(call, name, req); err != nil {
			l.breaks(err)
			return io.EOF
		}
	}
	return nil
}

// start sends a call, and has its answer come.
func (l *storeLine) start(call *pb.StoreCall, name string, req proto.Message) error {
	body, err := proto.Marshal(req)
	if err != nil {
		return err
	}
	ctx, cancel := l.ctx, context.CancelFunc(func() {})
	if us := call.GetTimeoutUs(); us > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(us)*time.Microsecond)
	}
	k := l.c.call(ctx, name, body)
	if err := l.c.w.net.start(k, l.c.to); err != nil {
		cancel()
		return err
	}
	l.c.w.mu.Lock()
	defer l.c.w.mu.Unlock()
	l.c.w.do(func() {
		defer cancel()
		r, err := l.c.wait(ctx, k)
		answer := &pb.StoreAnswer{Id: call.GetId()}
		switch {
		case ctx.Err() != nil:
			return // the caller has left
		case r.cut:
			l.breaks(err)
			return
		case err != nil:
			answer.Error = rpc.ToKeyError(0, rpc.FromStatus(err))
		default:
			answer.Reply = &pb.ResultsReply{}
			if err := proto.Unmarshal(r.body, answer.Reply); err != nil {
				l.breaks(err)
				return
			}
		}
		select {
		case l.answers <- answer:
		case <-l.ctx.Done():
		case <-l.over.Done():
		}
	})
	return nil
}

// breaks ends the stream.
func (l *storeLine) breaks(err error) {
	select {
	case l.broken <- err:
	default:
	}
}

// RecvMsg implements grpc.ClientStream.
func (l *storeLine) RecvMsg(m any) error {
	select {
	case answer := <-l.answers:
		m.(*pb.StoreAnswers).Answers = []*pb.StoreAnswer{answer}
		return nil
	case err := <-l.broken:
		return rpc.FromStatus(err)
	case <-l.ctx.Done():
		return rpc.FromStatus(status.FromContextError(l.ctx.Err()).Err())
	case <-l.over.Done():
		return status.Error(codes.Unavailable, "the process has ended")
	}
}

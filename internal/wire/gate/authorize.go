package gate

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// withWho names the caller, if it showed what it is.
func withWho(ctx context.Context, w auth.Credentials) context.Context {
	if who := rpc.CallerOf(w); who != nil {
		return WithCaller(ctx, who)
	}
	return ctx
}

// authorizer checks calls by an auth.Guard. It stands behind the guard that translates
// errors and recovers.
type authorizer struct {
	by      *auth.Guard
	refused *rpc.Refused
}

func (a authorizer) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	who := rpc.WhoOf(ctx)
	if err := a.by.Check(who, info.FullMethod, req); err != nil {
		return nil, err
	}
	return next(withWho(ctx, who), req)
}

// stream checks a stream when it opens, and each message on it. A message on a
// Sequence.Stream or Sequence.Watch that is not allowed is answered with the error, and the stream goes on;
// every other stream ends.
func (a authorizer) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	s := &checkedStream{ServerStream: stream, by: a.by, refused: a.refused, who: rpc.WhoOf(stream.Context()), method: info.FullMethod}
	s.ctx = withWho(stream.Context(), s.who)
	if err := a.by.Check(s.who, s.method, nil); err != nil {
		return err
	}
	return next(srv, s)
}

type checkedStream struct {
	grpc.ServerStream
	by      *auth.Guard
	refused *rpc.Refused
	who     auth.Credentials
	method  string
	ctx     context.Context
	send    sync.Mutex // guards ServerStream.SendMsg
}

// Context implements grpc.ServerStream.
func (s *checkedStream) Context() context.Context { return s.ctx }

// RecvMsg gives the next message that is allowed.
func (s *checkedStream) RecvMsg(m any) error {
	for {
		if err := s.ServerStream.RecvMsg(m); err != nil {
			return err
		}
		err := s.by.Check(s.who, s.method, m)
		if err == nil {
			return nil
		}
		var refusal any
		switch call := m.(type) {
		case *pb.StreamRequest:
			refusal = &pb.StreamReply{Id: call.GetId(), Result: &pb.StreamReply_Error{Error: rpc.ToKeyError(0, err)}}
		case *pb.WatchRequest:
			refusal = &pb.WatchReply{Errors: rpc.WatchErrors(call.GetFirstId(), rpc.Keys(call.GetAdd()), err)}
		default:
			return err
		}
		s.refused.NoteCall(s.ctx, err)
		if err := s.write(refusal); err != nil {
			return err
		}
	}
}

// SendMsg ends streams of many answers to one message, such as Store.Dump, for whom they
// are no longer allowed.
func (s *checkedStream) SendMsg(m any) error {
	if s.method != pb.Sequence_Stream_FullMethodName {
		if err := s.by.Check(s.who, s.method, nil); err != nil {
			return err
		}
	}
	return s.write(m)
}

// write sends for the handler and for refusals, which have goroutines of their own.
func (s *checkedStream) write(m any) error {
	s.send.Lock()
	defer s.send.Unlock()
	return s.ServerStream.SendMsg(m)
}

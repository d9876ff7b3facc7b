package rpc

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// AuthHeader is the metadata key, and the HTTP header, with "Bearer" and a token.
const AuthHeader = "authorization"

// shownInfo is the AuthInfo of a connection whose certificate was looked at.
type shownInfo struct {
	credentials.TLSInfo
	shown auth.Evidence
}

// WhoOf is what the caller of a call shows.
func WhoOf(ctx context.Context) (w auth.Credentials) {
	if info, ok := AuthInfo(ctx).(shownInfo); ok {
		w.Evidence = info.shown
	}
	w.Token, w.Err = auth.Bearer(metadata.ValueFromIncomingContext(ctx, AuthHeader))
	return w
}

// withWho names the caller, if it showed what it is.
func withWho(ctx context.Context, w auth.Credentials) context.Context {
	if who := CallerOf(w); who != nil {
		return WithCaller(ctx, who)
	}
	return ctx
}

// CallerOf is whom an Admission takes the one for whom w speaks for: his token or the
// identity in his certificate; nil for neither.
func CallerOf(w auth.Credentials) any {
	switch {
	case w.Token != "":
		return w.Token
	case w.Evidence.Identity.Role != "":
		return w.Evidence.Identity
	}
	return nil
}

// authorizer checks calls by an auth.Guard. It stands behind the guard that translates
// errors and recovers.
type authorizer struct {
	by      *auth.Guard
	refused *Refused
}

func (a authorizer) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	who := WhoOf(ctx)
	if err := a.by.Check(who, info.FullMethod, req); err != nil {
		return nil, err
	}
	return next(withWho(ctx, who), req)
}

// stream checks a stream when it opens, and each message on it. A message on a
// Sequence.Stream that is not allowed is answered with the error, and the stream goes on;
// every other stream ends.
func (a authorizer) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	s := &checkedStream{ServerStream: stream, by: a.by, refused: a.refused, who: WhoOf(stream.Context()), method: info.FullMethod}
	s.ctx = withWho(stream.Context(), s.who)
	if err := a.by.Check(s.who, s.method, nil); err != nil {
		return err
	}
	return next(srv, s)
}

type checkedStream struct {
	grpc.ServerStream
	by      *auth.Guard
	refused *Refused
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
		call, answered := m.(*pb.StreamRequest)
		if !answered {
			return err
		}
		s.refused.noteCall(s.ctx, err)
		refusal := &pb.StreamReply{Id: call.GetId(), Result: &pb.StreamReply_Error{Error: ToKeyError(0, err)}}
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

// write is for the handler and for refusals, which have goroutines of their own.
func (s *checkedStream) write(m any) error {
	s.send.Lock()
	defer s.send.Unlock()
	return s.ServerStream.SendMsg(m)
}

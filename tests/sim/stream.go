package sim

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// messages are the messages of a stream of answers. They travel together, because a reader of such a stream
// needs all of it.
type messages [][]byte

// streamed makes a method that answers with a stream one that answers with messages.
func streamed(desc *grpc.StreamDesc, name string) *grpc.MethodDesc {
	return &grpc.MethodDesc{MethodName: desc.StreamName, Handler: func(impl any, ctx context.Context, read func(any) error, guard grpc.UnaryServerInterceptor) (any, error) {
		return guard(ctx, nil, &grpc.UnaryServerInfo{Server: impl, FullMethod: name}, func(ctx context.Context, _ any) (any, error) {
			s := &outgoing{ctx: ctx, read: read}
			if err := desc.Handler(impl, s); err != nil {
				return nil, err
			}
			return s.sent, nil
		})
	}}
}

// outgoing is the stream as the handler has it.
type outgoing struct {
	grpc.ServerStream // nil, because no other method is called
	ctx               context.Context
	read              func(any) error
	sent              messages
}

// Context implements grpc.ServerStream.
func (s *outgoing) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream: there is one request.
func (s *outgoing) RecvMsg(m any) error { return s.read(m) }

// SendMsg implements grpc.ServerStream.
func (s *outgoing) SendMsg(m any) error {
	body, err := proto.Marshal(m.(proto.Message))
	s.sent = append(s.sent, body)
	return err
}

// NewStream implements grpc.ClientConnInterface: a line, a stream to a store, or one request with many answers,
// which travel together.
func (c *conn) NewStream(ctx context.Context, desc *grpc.StreamDesc, name string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	if name == pb.Store_Stream_FullMethodName {
		return c.lineTo(ctx)
	}
	if desc.ClientStreams {
		end, err := c.open(ctx, name)
		if err != nil {
			return nil, rpc.FromStatus(err)
		}
		return end, nil
	}
	return &incoming{c: c, ctx: ctx, k: c.call(ctx, name, nil)}, nil
}

// incoming is the stream as the caller has it.
type incoming struct {
	grpc.ClientStream // nil, because no other method is called
	c                 *conn
	ctx               context.Context
	k                 *call
	there             bool // the answer has come
	left              messages
}

// SendMsg implements grpc.ClientStream.
func (s *incoming) SendMsg(m any) (err error) {
	s.k.body, err = proto.Marshal(m.(proto.Message))
	return err
}

// CloseSend implements grpc.ClientStream: the request goes out.
func (s *incoming) CloseSend() error { return rpc.FromStatus(s.c.w.net.start(s.k, s.c.to)) }

// RecvMsg implements grpc.ClientStream.
func (s *incoming) RecvMsg(m any) error {
	if !s.there {
		r, err := s.c.wait(s.ctx, s.k)
		if err != nil {
			return rpc.FromStatus(err)
		}
		s.there, s.left = true, r.more
	}
	if len(s.left) == 0 {
		return io.EOF
	}
	body := s.left[0]
	s.left = s.left[1:]
	return proto.Unmarshal(body, m.(proto.Message))
}

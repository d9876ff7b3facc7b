package requestid

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// ServerOptions are the interceptors of a server; they go behind those that open spans.
func (s *Stamp) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(s.serveUnary), grpc.ChainStreamInterceptor(s.serveStream)}
}

// DialOptions are the interceptors of a client.
func (s *Stamp) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(s.callUnary), grpc.WithChainStreamInterceptor(s.callStream)}
}

func (s *Stamp) serveUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ctx, id := s.arrived(ctx, metadata.ValueFromIncomingContext(ctx, metadataKey))
	_ = grpc.SetHeader(ctx, metadata.Pairs(metadataKey, id)) // nothing was sent yet
	return next(ctx, req)
}

func (s *Stamp) serveStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx, id := s.arrived(stream.Context(), metadata.ValueFromIncomingContext(stream.Context(), metadataKey))
	_ = stream.SetHeader(metadata.Pairs(metadataKey, id))
	return next(srv, stamped{stream, ctx})
}

// stamped is a stream whose context has the ID.
type stamped struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s stamped) Context() context.Context { return s.ctx }

func (s *Stamp) callUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return call(s.outgoing(ctx), method, req, reply, cc, opts...)
}

func (s *Stamp) callStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return open(s.outgoing(ctx), desc, cc, method, opts...)
}

// outgoing is ctx with the ID to be sent; one that is there already stays.
func (s *Stamp) outgoing(ctx context.Context) context.Context {
	if md, ok := metadata.FromOutgoingContext(ctx); ok && len(md.Get(metadataKey)) > 0 {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, metadataKey, s.leaving(ctx))
}

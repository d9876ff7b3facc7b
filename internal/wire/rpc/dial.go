package rpc

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"
)

// Connection attempts: a peer that restarts is found within half a second of its
// listening again, and an address that swallows packets is given up after two.
const (
	connectBase    = 20 * time.Millisecond
	connectMax     = 500 * time.Millisecond
	connectTimeout = 2 * time.Second
)

// Dial makes a connection to host:port without waiting for it. Calls on it fail at once while the peer is
// away, unless they ask to wait. Errors of its calls have gone through FromStatus. It is plaintext unless
// grpc.WithTransportCredentials is among opts, which come last and may override everything. Each connection
// attempt resolves the name again, and no proxy of the environment is used. The caller closes the
// connection.
func Dial(addr string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	target := addr
	if !strings.Contains(addr, "://") {
		target = "passthrough:///" + addr
	}
	base := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithInitialWindowSize(StreamWindow),
		grpc.WithInitialConnWindowSize(ConnWindow),
		grpc.WithPerRPCCredentials(ownProtocol()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: connectBase, Multiplier: 1.6, Jitter: 0.2, MaxDelay: connectMax},
			MinConnectTimeout: connectTimeout,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: KeepaliveTime, Timeout: KeepaliveTimeout, PermitWithoutStream: true}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxSend), grpc.MaxCallSendMsgSize(MaxRecv), grpc.ForceCodecV2(NewCodec())),
		experimental.WithBufferPool(Buffers),
		grpc.WithChainUnaryInterceptor(unaryErrors),
		grpc.WithChainStreamInterceptor(streamErrors),
	}
	conn, err := grpc.NewClient(target, append(base, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	return conn, nil
}

func unaryErrors(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return FromStatus(call(ctx, method, req, reply, cc, opts...))
}

func streamErrors(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, FromStatus(err)
	}
	return translated{stream}, nil
}

// translated is a stream whose errors have gone through FromStatus.
type translated struct{ grpc.ClientStream }

func (t translated) SendMsg(m any) error { return FromStatus(t.ClientStream.SendMsg(m)) }
func (t translated) RecvMsg(m any) error { return FromStatus(t.ClientStream.RecvMsg(m)) }

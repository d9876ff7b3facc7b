package harness

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
)

const (
	// reconnect is the time between two tries to reach the server. It is short, so that a forwarder adds no
	// visible delay.
	reconnect = 10 * time.Millisecond
	// connecting bounds one try to reach the server.
	connecting = 5 * time.Second
)

// Meet hears of each message of a call that is forwarded: once before a request is passed on, and once
// after, before the answer is. An error before it ends the call in place of what the server says.
type Meet func(method string, request []byte, after bool) error

// Forward passes gRPC calls on to a server as they are, until the test is over, and gives the
// address to call.
func Forward(t testing.TB, target string, meet Meet) (addr string) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(asIs{})),
		grpc.WithIdleTimeout(0), grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: reconnect, Multiplier: 1, MaxDelay: reconnect}, MinConnectTimeout: connecting}))
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.ForceServerCodec(asIs{}), grpc.UnknownServiceHandler(func(_ any, in grpc.ServerStream) error { return forward(conn, in, meet) }),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Millisecond, PermitWithoutStream: true}))
	t.Cleanup(func() {
		s.Stop()
		_ = conn.Close()
	})
	go func() { _ = s.Serve(lis) }()
	return lis.Addr().String()
}

// forward passes one call on.
func forward(conn *grpc.ClientConn, in grpc.ServerStream, meet Meet) error {
	method, _ := grpc.MethodFromServerStream(in)
	md, _ := metadata.FromIncomingContext(in.Context())
	ctx, cancel := context.WithCancelCause(metadata.NewOutgoingContext(in.Context(), md.Copy()))
	defer cancel(nil)
	out, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return err
	}
	var mu sync.Mutex // guards request
	var request []byte
	go func() {
		for {
			var message []byte
			if err := in.RecvMsg(&message); err != nil {
				if errors.Is(err, io.EOF) {
					_ = out.CloseSend()
				} else {
					cancel(err)
				}
				return
			}
			mu.Lock()
			request = message
			mu.Unlock()
			if err := meet(method, message, false); err != nil {
				cancel(err)
				return
			}
			if out.SendMsg(&message) != nil {
				return // the other way has the reason
			}
		}
	}()
	header, err := out.Header()
	if err == nil {
		err = in.SendHeader(header)
	}
	for err == nil {
		var message []byte
		if err = out.RecvMsg(&message); err == nil {
			mu.Lock()
			asked := request
			mu.Unlock()
			if err = meet(method, asked, true); err == nil {
				err = in.SendMsg(&message)
			}
		}
	}
	if cause := context.Cause(ctx); cause != nil && in.Context().Err() == nil {
		return cause
	}
	in.SetTrailer(out.Trailer())
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// asIs leaves messages as they travel.
type asIs struct{}

func (asIs) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (asIs) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data)
	return nil
}

func (asIs) Name() string { return "proto" }

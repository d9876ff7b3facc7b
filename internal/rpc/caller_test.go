package rpc_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/seqsvr/seqsvr/internal/auth"
	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/tlstest"
)

// namer answers every call with the name of its caller.
type namer struct {
	pb.UnimplementedSegmentServer
	guard *auth.Guard
}

func (n namer) List(ctx context.Context, _ *pb.SegmentListRequest) (*pb.SegmentListReply, error) {
	return &pb.SegmentListReply{Tags: []*pb.SegmentTag{{Tag: rpc.Asker(ctx, n.guard)}}}, nil
}

func TestARouterAloneSaysForWhomItAsks(t *testing.T) {
	ca := tlstest.New(t, "ca")
	for _, mode := range []auth.Mode{auth.Accept, auth.Off} {
		guard, err := auth.New(auth.Config{Mode: mode, Cluster: "c"})
		if err != nil {
			t.Fatal(err)
		}
		secured := mustTLS(t, ca.Issue(t.TempDir(), "server", -time.Hour, as(t, "spiffe://c/alloc/a1")))
		if guard != nil {
			secured.Identify("c", false)
		}
		creds, err := secured.ServerCreds(rpc.OptionalClients)
		if err != nil {
			t.Fatal(err)
		}
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := rpc.NewServer(rpc.ServerConfig{Creds: creds, Auth: guard})
		pb.RegisterSegmentServer(srv, namer{guard: guard})
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- rpc.Serve(ctx, srv, lis) }()
		for uri, want := range map[string]string{
			"spiffe://c/caller/chat": "caller/chat",
			"spiffe://c/router/r1":   "router/r1 for caller/behind",
			"spiffe://d/caller/chat": "host 127.0.0.1",
		} {
			if guard == nil {
				want = "host 127.0.0.1"
			}
			conn, err := rpc.Dial(lis.Addr().String(), mustTLS(t, ca.Issue(t.TempDir(), "client", 0, as(t, uri))).DialOptions()...)
			if err != nil {
				t.Fatal(err)
			}
			said := metadata.AppendToOutgoingContext(t.Context(), rpc.ForHeader, "caller/behind")
			got, err := pb.NewSegmentClient(conn).List(said, &pb.SegmentListRequest{}, grpc.WaitForReady(true))
			if err != nil || got.GetTags()[0].GetTag() != want {
				t.Errorf("auth %s: %s: got %v, %v, want %q", mode, uri, got, err, want)
			}
			_ = conn.Close()
		}
		stop()
		<-done
	}
	if got := rpc.Asker(t.Context(), nil); got != "" {
		t.Errorf("a call of this process: %q", got)
	}
}

package rpc_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/kit/tlstest"
)

// namer answers every call with the name of its caller.
type namer struct {
	pb.UnimplementedSegmentServer
	guard *auth.Guard
}

func (n namer) List(ctx context.Context, _ *pb.SegmentListRequest) (*pb.SegmentListReply, error) {
	name, via := rpc.Asker(ctx, n.guard)
	passed, _ := metadata.FromOutgoingContext(rpc.For(ctx, n.guard))
	return &pb.SegmentListReply{Tags: []*pb.SegmentTag{{Tag: name}, {Tag: via}, {Tag: passed.Get(rpc.ForHeader)[0]}}}, nil
}

func TestARouterAloneSaysForWhomItAsks(t *testing.T) {
	ca := tlstest.New(t, "ca")
	for _, mode := range []auth.Mode{auth.Accept, auth.Off} {
		guard, err := auth.New(auth.Config{Mode: mode, Cluster: "c"})
		if err != nil {
			t.Fatal(err)
		}
		secured := tlstest.Open(t, ca.Issue(t.TempDir(), "server", -time.Hour, tlstest.As(t, "spiffe://c/alloc/a1")))
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
		srv := gate.NewServer(gate.ServerConfig{Creds: creds, Auth: guard})
		pb.RegisterSegmentServer(srv, namer{guard: guard})
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- gate.Serve(ctx, srv, lis) }()
		unproved := [3]string{"host 127.0.0.1 for caller/behind", "host 127.0.0.1", "host 127.0.0.1"}
		for uri, want := range map[string][3]string{ // the name, who says so without proof, and what is passed on
			"spiffe://c/caller/chat": {"caller/chat", "", "caller/chat"},
			"spiffe://c/router/r1":   {"router/r1 for caller/behind", "", "router/r1 for caller/behind"},
			"spiffe://d/caller/chat": unproved,
		} {
			if guard == nil {
				want = unproved
			}
			conn, err := rpc.Dial(lis.Addr().String(), tlstest.Open(t, ca.Issue(t.TempDir(), "client", 0, tlstest.As(t, uri))).DialOptions()...)
			if err != nil {
				t.Fatal(err)
			}
			said := metadata.AppendToOutgoingContext(t.Context(), rpc.ForHeader, "caller/behind")
			got, err := pb.NewSegmentClient(conn).List(said, &pb.SegmentListRequest{}, grpc.WaitForReady(true))
			if err != nil {
				t.Fatal(err)
			}
			if tags := got.GetTags(); [3]string{tags[0].GetTag(), tags[1].GetTag(), tags[2].GetTag()} != want {
				t.Errorf("auth %s: %s: got %v, want %q", mode, uri, tags, want)
			}
			_ = conn.Close()
		}
		stop()
		<-done
	}
	if got, via := rpc.Asker(t.Context(), nil); got != "" || via != "" {
		t.Errorf("a call of this process: %q", got)
	}
}

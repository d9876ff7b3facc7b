package gate_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/kit/tlstest"
)

// slow answers after a while, and tells the status at once.
type slow struct {
	counter
	pb.UnimplementedAdminServer
}

const slowly = 20 * time.Millisecond

func (s slow) Next(ctx context.Context, r *pb.NextRequest) (*pb.NextReply, error) {
	time.Sleep(slowly)
	return s.counter.Next(ctx, r)
}

func (slow) Status(context.Context, *pb.StatusRequest) (*pb.StatusReply, error) {
	return &pb.StatusReply{}, nil
}

func TestAnswersAreTimedByPrincipalElseByHost(t *testing.T) {
	ca := tlstest.New(t, "ca")
	files := ca.Issue(t.TempDir(), "server", 0, tlstest.As(t, "spiffe://c/alloc/a1"))
	caller := ca.Issue(t.TempDir(), "client", 0, tlstest.As(t, "spiffe://c/caller/shop"))
	guard, err := auth.New(auth.Config{Mode: auth.Accept, Cluster: "c"})
	if err != nil {
		t.Fatal(err)
	}
	secured, err := rpc.NewTLS(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	secured.Identify("c", true)
	secured.AllowPlaintext(rpc.AcceptPlaintext)
	creds, err := secured.ServerCreds(rpc.OptionalClients)
	if err != nil {
		t.Fatal(err)
	}
	type one struct {
		caller string
		slow   bool
	}
	got := make(chan one, 16)
	srv := gate.NewServer(gate.ServerConfig{Creds: creds, Auth: guard, Answered: func(caller string, took time.Duration) {
		got <- one{caller, took >= slowly && took < time.Minute}
	}})
	pb.RegisterSequenceServer(srv, slow{})
	pb.RegisterAdminServer(srv, slow{})
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = srv.Serve(lis) }()
	t.Cleanup(srv.Stop)

	known, err := rpc.Dial(lis.Addr().String(), tlstest.Open(t, caller).DialOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer known.Close()
	unknown, err := rpc.Dial(lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer unknown.Close()
	if _, err := pb.NewAdminClient(unknown).Status(t.Context(), &pb.StatusRequest{}); err != nil {
		t.Fatal(err)
	}
	want := []one{{"caller/shop", true}, {"127.0.0.1", true}, {"127.0.0.1", false}}
	for _, conn := range []pb.SequenceClient{pb.NewSequenceClient(known), pb.NewSequenceClient(unknown)} {
		if _, err := conn.Next(t.Context(), &pb.NextRequest{Count: 1}); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := pb.NewSequenceClient(unknown).Stream(t.Context())
	if err == nil {
		err = stream.Send(&pb.StreamRequest{Id: 7})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	var all []one
	for range want {
		all = append(all, <-got)
	}
	// The message of the stream is answered at once, which a busy machine may take for slow.
	all[2].slow = false
	if diff := cmp.Diff(want, all, cmp.AllowUnexported(one{})); diff != "" {
		t.Error(diff)
	}
}

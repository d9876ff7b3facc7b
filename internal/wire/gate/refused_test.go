package gate_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestAServerCountsWhatItRefusesByTheCallersHost(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := rpc.NewRefused(nil)
	srv := gate.NewServer(gate.ServerConfig{Refused: r})
	pb.RegisterSequenceServer(srv, refusing{})
	done := make(chan error, 1)
	go func() { done <- srv.Serve(lis) }()
	t.Cleanup(func() {
		srv.Stop()
		<-done
	})
	conn, err := rpc.Dial(lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := pb.NewSequenceClient(conn).Next(t.Context(), &pb.NextRequest{}); !errors.Is(err, seq.ErrQuota) {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]rpc.Refusal{{Reason: rpc.RefusedQuota, Address: "127.0.0.1", Count: 1}}, r.Totals()); diff != "" {
		t.Error(diff)
	}
}

// refusing refuses every call.
type refusing struct{ pb.UnimplementedSequenceServer }

func (refusing) Next(context.Context, *pb.NextRequest) (*pb.NextReply, error) {
	return nil, seq.ErrQuota
}

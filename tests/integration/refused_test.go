package integration

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// The status shows the refusals of an AllocSvr and of a store, by reason and host.
func TestAStatusSaysWhatNodesRefused(t *testing.T) {
	c := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	future := metadata.AppendToOutgoingContext(ctx, rpc.ProtocolHeader, "999/999")
	dial := func(addr string) *grpc.ClientConn {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	_, ofAlloc := pb.NewAdminClient(dial(c.allocs[0].addr)).Status(future, &pb.StatusRequest{})
	_, ofStore := pb.NewStoreClient(dial(c.allocs[0].stores[0])).Describe(future, &pb.DescribeRequest{})
	for what, err := range map[string]error{"alloc": ofAlloc, "store": ofStore} {
		if rpc.CodeOf(rpc.FromStatus(err)) != pb.ErrorCode_ERROR_CODE_PROTOCOL {
			t.Fatalf("%s: got %v, want %v", what, err, seq.ErrProtocol)
		}
	}
	status, err := c.allocs[0].admin.Status(ctx, &pb.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	ours := func(r *pb.Refusal) bool {
		return r.GetReason() == string(rpc.RefusedForeign) && r.GetAddress() == "127.0.0.1" && r.GetCount() == 1
	}
	if !slices.ContainsFunc(status.GetRefused(), ours) {
		t.Errorf("of the alloc: got %v", status.GetRefused())
	}
	if !slices.ContainsFunc(status.GetStores(), func(s *pb.StoreStatus) bool { return slices.ContainsFunc(s.GetRefused(), ours) }) {
		t.Errorf("of the stores: got %v", status.GetStores())
	}
}

package segment

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// dialed is a client of a node over gRPC.
func dialed(t *testing.T, n *node) pb.SegmentClient {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := gate.NewServer(gate.ServerConfig{})
	n.Register(srv)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(lis)
	}()
	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		srv.Stop()
		<-done
	})
	return pb.NewSegmentClient(conn)
}

func TestTheServiceOverTheWire(t *testing.T) {
	f := newStores(clock.Boot())
	n := newNode(t, f, 1)
	client := dialed(t, n)
	ctx := patient(t)

	put, err := client.Put(ctx, &pb.SegmentPutRequest{Tag: &pb.SegmentTag{Tag: "order", MinStep: 100, MaxStep: 800, Start: 7}})
	if err != nil || !put.Created {
		t.Fatalf("put: %v, %v", put, err)
	}
	section := n.cfg.Mapping.SectionOfName("order")
	tag := &pb.SegmentTag{Tag: "order", MinStep: 100, MaxStep: 800, Start: 7, Section: uint32(section)}
	if diff := cmp.Diff(tag, put.Tag, protocmp.Transform()); diff != "" {
		t.Errorf("put, -want +got:\n%s", diff)
	}
	list, err := client.List(ctx, &pb.SegmentListRequest{})
	if diff := cmp.Diff(&pb.SegmentListReply{Tags: []*pb.SegmentTag{tag}}, list, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("list: %v, -want +got:\n%s", err, diff)
	}
	before, err := client.Status(ctx, &pb.SegmentStatusRequest{Tag: "order"})
	if err != nil || len(before.Tags) != 1 || before.Tags[0].State != "absent" {
		t.Errorf("status before: %v, %v", before, err)
	}
	got, err := client.Take(ctx, &pb.SegmentTakeRequest{Tag: "order", Count: 5})
	if diff := cmp.Diff(&pb.SegmentTakeReply{First: 7, Last: 11, Max: 106}, got, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("take: %v, -want +got:\n%s", err, diff)
	}
	st, err := client.Status(ctx, &pb.SegmentStatusRequest{})
	want := &pb.SegmentStatusReply{Tags: []*pb.SegmentStatus{{
		Tag: tag, State: "owned", Leased: true, Current: 11, Max: 106, Step: 100,
		Buffers: []*pb.SegmentBuffer{{First: 7, Last: 106, Left: 95}},
	}}}
	if diff := cmp.Diff(want, st, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("status: %v, -want +got:\n%s", err, diff)
	}
}

func TestErrorsCrossTheWireByName(t *testing.T) {
	f := newStores(clock.Boot())
	n := newNode(t, f, 1)
	client := dialed(t, n)
	n.put(t, limits)
	n.must(t, "order", 1)
	f.mu.Lock()
	f.draw = func() fault { return lost }
	f.mu.Unlock()
	for _, row := range []struct {
		req    *pb.SegmentTakeRequest
		wait   time.Duration
		code   codes.Code
		reason error
	}{
		{&pb.SegmentTakeRequest{Tag: "nobody", Count: 1}, 30 * time.Second, codes.NotFound, seq.ErrUnknownTag},
		{&pb.SegmentTakeRequest{Tag: "order", Count: seq.MaxCount + 1}, 30 * time.Second, codes.InvalidArgument, seq.ErrBadCount},
		{&pb.SegmentTakeRequest{Tag: "no spaces", Count: 1}, 30 * time.Second, codes.InvalidArgument, seq.ErrBadArgument},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), row.wait)
		_, err := client.Take(ctx, row.req)
		cancel()
		if got := status.Code(err); got != row.code || !errors.Is(rpc.FromStatus(err), row.reason) {
			t.Errorf("%v: got %v, want %v", row.req, err, row.reason)
		}
	}
}

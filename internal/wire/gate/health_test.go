package gate_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

func TestHealthAnswersForEveryServiceByItsName(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := gate.NewServer(gate.ServerConfig{})
	pb.RegisterSequenceServer(srv, sequence{})
	states := gate.RegisterHealth(srv, pb.Peer_ServiceDesc.ServiceName)
	go func() { _ = srv.Serve(lis) }()
	defer srv.Stop()
	conn, err := rpc.Dial(lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	client := healthpb.NewHealthClient(conn)
	check := func(service string, want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if got, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: service}); err != nil || got.GetStatus() != want {
			t.Errorf("%q: got %v, %v, want %v", service, got.GetStatus(), err, want)
		}
	}
	const up, down = healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING
	watch, err := client.Watch(ctx, &healthpb.HealthCheckRequest{Service: "seqsvr.v1.Sequence"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := watch.Recv(); err != nil || got.GetStatus() != up {
		t.Errorf("watched %v, %v, want %v", got.GetStatus(), err, up)
	}
	for _, service := range []string{"", "seqsvr.v1.Sequence", "seqsvr.v1.Peer", "grpc.health.v1.Health"} {
		check(service, up)
	}
	states.SetServingStatus("", down)
	for _, service := range []string{"", "seqsvr.v1.Sequence", "seqsvr.v1.Peer"} {
		check(service, down)
	}
	if got, err := watch.Recv(); err != nil || got.GetStatus() != down {
		t.Errorf("watched %v, %v, want %v", got.GetStatus(), err, down)
	}
	states.SetServingStatus("seqsvr.v1.Sequence", up) // one of its own
	check("seqsvr.v1.Sequence", up)
	check("seqsvr.v1.Peer", down)
	if _, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: "seqsvr.v1.Store"}); status.Code(err) != codes.NotFound {
		t.Errorf("a service that is not here: got %v, want NotFound", err)
	}
}

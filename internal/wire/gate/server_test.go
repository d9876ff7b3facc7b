package gate_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sequence answers by the space asked for.
type sequence struct {
	pb.UnimplementedSequenceServer
}

func (sequence) Next(_ context.Context, r *pb.NextRequest) (*pb.NextReply, error) {
	switch r.GetSpace() {
	case "panic":
		panic("secret")
	case "owner":
		return nil, &rpc.NotOwnerError{Section: 3, Owner: "b", Addr: "b:1", RouteVersion: 4}
	}
	return &pb.NextReply{First: 1, Last: 1}, nil
}

func (sequence) Stream(stream grpc.BidiStreamingServer[pb.StreamRequest, pb.StreamReply]) error {
	r, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if r.GetId() == 9 {
		<-stream.Context().Done() // hangs until it is cut off
	}
	return seq.ErrShuttingDown
}

// ownLife is the life of the cluster that the server of start belongs to.
var ownLife = seq.Incarnation{Cluster: seq.ClusterID{15: 1}, Era: 1, Binding: seq.ClusterID{15: 3}}

func start(t *testing.T) (stop context.CancelFunc, done chan error, conn *grpc.ClientConn) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := gate.NewServer(gate.ServerConfig{ClusterID: func() string { return "one" }, Incarnation: func() seq.Incarnation { return ownLife }})
	pb.RegisterSequenceServer(srv, sequence{})
	gate.RegisterHealth(srv)
	ctx, stop := context.WithCancel(context.Background())
	done = make(chan error, 1)
	go func() { done <- gate.Serve(ctx, srv, lis) }()
	conn, err = rpc.Dial(lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = conn.Close()
	})
	return stop, done, conn
}

func TestErrorsCrossTheWireByName(t *testing.T) {
	gate.Recover(t)
	stop, done, conn := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c := pb.NewSequenceClient(conn)

	_, err := c.Next(ctx, &pb.NextRequest{Space: "owner"})
	var owner *rpc.NotOwnerError
	if !errors.Is(err, seq.ErrNotOwner) || !errors.As(err, &owner) || owner.Addr != "b:1" || owner.RouteVersion != 4 {
		t.Errorf("got %v", err)
	}
	if _, err = c.Next(ctx, &pb.NextRequest{Space: "panic"}); status.Code(err) != codes.Internal || cmp.Equal(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	stream, err := c.Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&pb.StreamRequest{Id: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, seq.ErrShuttingDown) {
		t.Errorf("got %v", err)
	}
	h, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil || h.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("got health %v, %v", h, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestACallForAnotherClusterIsRefused(t *testing.T) {
	_, _, conn := start(t)
	other := seq.Incarnation{Cluster: seq.ClusterID{15: 2}}
	again := ownLife
	again.Binding = seq.ClusterID{15: 9}
	for _, row := range []struct {
		name  string
		life  seq.Incarnation
		want  error
		texts []string
	}{
		{"", seq.Incarnation{}, nil, nil},
		{"one", ownLife, nil, nil},
		{"two", seq.Incarnation{}, seq.ErrForeignCluster, []string{"two", "one"}},
		{"one", other, seq.ErrForeignCluster, []string{ownLife.String(), other.String()}},
		{"one", again, seq.ErrForeignCluster, []string{ownLife.String(), again.String()}},
		{"one", seq.Incarnation{Cluster: ownLife.Cluster}, seq.ErrStaleEra, []string{ownLife.String()}},
		{"one", seq.Incarnation{Cluster: ownLife.Cluster, Era: 2}, seq.ErrStaleEra, []string{ownLife.String()}},
	} {
		c, err := rpc.Dial(conn.CanonicalTarget(), rpc.SayTarget(func() *rpc.Target { return rpc.NewTarget(row.name, row.life) }))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		calls := map[string]func() error{
			"unary": func() error {
				_, err := pb.NewSequenceClient(c).Next(ctx, &pb.NextRequest{})
				return err
			},
			"stream": func() error {
				stream, err := pb.NewSequenceClient(c).Stream(ctx)
				if err != nil {
					return err
				}
				_ = stream.CloseSend()
				if _, err = stream.Recv(); row.want == nil {
					return nil
				}
				return err
			},
			"routes": func() error {
				_, err := pb.NewSequenceClient(c).Routes(ctx, &pb.RoutesRequest{})
				return err
			},
		}
		for kind, call := range calls {
			want := row.want
			if kind == "routes" {
				want = nil
			}
			err := call()
			if want == nil {
				if rpc.CodeOf(err) != 0 { // Routes has no handler
					t.Errorf("cluster %q, %v, %s: got %v", row.name, row.life, kind, err)
				}
				continue
			}
			if !errors.Is(err, want) {
				t.Errorf("cluster %q, %v, %s: got %v, want %v", row.name, row.life, kind, err, want)
			}
			for _, text := range row.texts {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v, expected %q in it", err, text)
				}
			}
		}
		cancel()
		_ = c.Close()
	}
}

func TestAHangingStreamDoesNotHoldUpTheStop(t *testing.T) {
	stop, done, conn := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stream, err := pb.NewSequenceClient(conn).Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&pb.StreamRequest{Id: 9}); err != nil {
		t.Fatal(err)
	}
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
	case <-ctx.Done():
		t.Fatal("Serve did not end")
	}
}

func TestRoutesAndMappingComeBackAsTheyWent(t *testing.T) {
	m, err := seq.NewMapping(seq.Space{Name: "user", Sections: 2}, seq.Space{Name: "pts", Sections: 1, Mode: seq.Strict, Step: 8})
	if err != nil {
		t.Fatal(err)
	}
	gotM, err := rpc.MappingFromProto(rpc.MappingToProto(m))
	if err != nil || !cmp.Equal(gotM, m) {
		t.Errorf("mapping: %v\n%s", err, cmp.Diff(m, gotM))
	}
	want := &seq.RouteTable{
		Version:  7,
		Nodes:    []seq.Node{{Name: "a", Addr: "a:1", Session: 5, Weight: 100, Zone: "fra-1"}, {Name: "b", Addr: "b:1", Drained: true, Leaving: 6}},
		Sections: []seq.Placement{{Owner: 0, Standby: 1, Standby2: seq.NoNode}, {Owner: 1, Standby: 0, Standby2: seq.NoNode}, {Owner: seq.NoNode, Standby: seq.NoNode, Standby2: seq.NoNode}},
		Pins:     map[seq.SectionID]string{1: "b"},
		Frozen:   "mass suspicion",
	}
	got, err := rpc.RoutesFromProto(rpc.RoutesToProto(want), m)
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("routes: %v\n%s", err, cmp.Diff(want, got))
	}
	if got, err := rpc.RoutesFromProto(nil, m); got != nil || err != nil {
		t.Errorf("nil: got %v, %v", got, err)
	}
}

func TestUnsoundRoutesAreRefused(t *testing.T) {
	m, err := seq.NewMapping(seq.Space{Name: "user", Sections: 1})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]*pb.RouteTable{
		"columns of unlike length": {Owner: []int32{-1}, Standby: []int32{-1}},
		"an index past the nodes":  {Owner: []int32{0}, Standby: []int32{-1}, Standby2: []int32{-1}},
		"an index past int16":      {Owner: []int32{1 << 16}, Standby: []int32{-1}, Standby2: []int32{-1}},
		"too few sections":         {},
	}
	for name, row := range rows {
		if _, err := rpc.RoutesFromProto(row, m); !errors.Is(err, seq.ErrBadTable) {
			t.Errorf("%s: got %v, want %v", name, err, seq.ErrBadTable)
		}
	}
	if _, err := rpc.MappingFromProto(nil); !errors.Is(err, seq.ErrBadMapping) {
		t.Errorf("no mapping: got %v", err)
	}
}

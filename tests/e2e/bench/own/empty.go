package own

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/host"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/report"
)

// Empty is a process with gRPC as it comes and a Next that counts and does nothing else: what
// unary calls can reach at most. By the routes that it tells it owns everything.
type Empty struct {
	*host.Server
	cluster *Cluster
	addr    string
}

// StartEmpty starts an Empty. Its program calls ServeEmpty with the address to listen at and the address of
// a router of the cluster.
func (c *Cluster) StartEmpty(ctx context.Context, dir, program, flag string) (*Empty, error) {
	port, err := host.FreePort()
	if err != nil {
		return nil, err
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	program, err = filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	server, err := host.Start(dir, "empty", nil, program, flag, addr+","+c.GRPC())
	if err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := server.Until(wait, func() error { return host.Listening(port) }); err != nil {
		server.Stop()
		return nil, err
	}
	return &Empty{server, c, addr}, nil
}

// Bench is Cluster.Bench against it.
func (e *Empty) Bench(ctx context.Context, d time.Duration, args ...string) (report.Sample, error) {
	before, err := host.CPU(e.Pid())
	if err != nil {
		return report.Sample{}, err
	}
	got, err := e.cluster.seqctlBench(ctx, e.addr, d, args)
	if err != nil {
		return report.Sample{}, err
	}
	after, err := host.CPU(e.Pid())
	if err != nil {
		return report.Sample{}, err
	}
	return report.Sample{Rate: got.Rate, P50: got.Latency.P50, P99: got.Latency.P99, P999: got.Latency.P999, ClientCPU: got.ClientCPU,
		ServerCPU: float64((after - before).Microseconds()) / float64(got.Total)}, nil
}

// empty implements pb.SequenceServer.
type empty struct {
	pb.UnimplementedSequenceServer
	routes *pb.RoutesReply
	last   atomic.Uint64
}

func (e *empty) Next(context.Context, *pb.NextRequest) (*pb.NextReply, error) {
	n := e.last.Add(1)
	return &pb.NextReply{First: n, Last: n, RouteVersion: e.routes.GetRouteVersion()}, nil
}

func (e *empty) Routes(context.Context, *pb.RoutesRequest) (*pb.RoutesReply, error) {
	return e.routes, nil
}

// ServeEmpty listens, and serves until its process ends. It tells the routes of a router, with itself in
// the place of every owner.
func ServeEmpty(ctx context.Context, addr, router string) error {
	conn, err := grpc.NewClient(router, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ask, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	routes, err := pb.NewSequenceClient(conn).Routes(ask, &pb.RoutesRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("routes of %s: %w", router, err)
	}
	for _, n := range routes.GetRoutes().GetNodes() {
		n.Addr = addr
	}
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	srv := grpc.NewServer()
	pb.RegisterSequenceServer(srv, &empty{routes: routes})
	defer context.AfterFunc(ctx, srv.Stop)()
	return srv.Serve(lis)
}

package ctl

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Bounds of asking one node, so that one that hangs does not take the whole time of
// the verb. A node that is alive tells its routes at once, but asks the stores for its
// status.
const (
	routesAttempt = time.Second
	statusAttempt = 4 * time.Second
)

// cluster is what --addr told about the cluster.
type cluster struct {
	id      string
	mapping seq.Mapping
	table   *seq.RouteTable
}

// Call makes a unary call to addr, on a connection of its own: one attempt, with the error as
// it came.
func Call[C, Q, R any](ctx context.Context, o *Options, addr string, client func(grpc.ClientConnInterface) C,
	method func(C, context.Context, *Q, ...grpc.CallOption) (*R, error), req *Q) (*R, error) {
	conn, err := rpc.Dial(addr, o.Dial()...)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return method(client(conn), ctx, req)
}

// askRoutes gets the mapping and the route table from a router or AllocSvr.
func askRoutes(ctx context.Context, o *Options, addr string) (*cluster, error) {
	reply, err := Call(ctx, o, addr, pb.NewSequenceClient, pb.SequenceClient.Routes, &pb.RoutesRequest{})
	if err != nil {
		return nil, plain(addr, err)
	}
	mapping, err := rpc.MappingFromProto(reply.GetMapping())
	if err != nil {
		return nil, fmt.Errorf("routes of %s: %w", addr, err)
	}
	table, err := rpc.RoutesFromProto(reply.GetRoutes(), mapping)
	if err != nil {
		return nil, fmt.Errorf("routes of %s: %w", addr, err)
	}
	if table == nil {
		return nil, fmt.Errorf("routes of %s: %w", addr, seq.ErrNoRoute)
	}
	return &cluster{id: reply.GetClusterId(), mapping: mapping, table: table}, nil
}

// onNode calls a method of an AllocSvr's Admin service.
func onNode[Q, R any](ctx context.Context, o *Options, addr string, method func(pb.AdminClient, context.Context, *Q, ...grpc.CallOption) (*R, error), req *Q) (*R, error) {
	reply, err := Call(ctx, o, addr, pb.NewAdminClient, method, req)
	return reply, plain(addr, err)
}

// onAnyNode finds an AllocSvr that answers, by the routes that --addr has, and calls the
// method on that one only: a change is never tried on a second node.
func onAnyNode[Q, R any](ctx context.Context, o *Options, method func(pb.AdminClient, context.Context, *Q, ...grpc.CallOption) (*R, error), req *Q) (*R, error) {
	c, err := askRoutes(ctx, o, o.Addr)
	if err != nil {
		return nil, err
	}
	last := seq.ErrNoRoute
	for _, node := range c.table.Nodes {
		probe, cancel := context.WithTimeout(ctx, routesAttempt)
		_, last = askRoutes(probe, o, node.Addr)
		cancel()
		if last == nil {
			return onNode(ctx, o, node.Addr, method, req)
		}
	}
	return nil, fmt.Errorf("none of %d AllocSvr answers: %w", len(c.table.Nodes), last)
}

// StoreAddrs are the gRPC addresses of the stores, as an AllocSvr that the router or
// AllocSvr at --addr leads to knows them.
func StoreAddrs(ctx context.Context, o *Options) ([]string, error) {
	reply, err := onAnyNode(ctx, o, pb.AdminClient.Status, &pb.StatusRequest{})
	var addrs []string
	for _, s := range reply.GetStores() {
		addrs = append(addrs, s.GetAddr())
	}
	if err == nil && len(addrs) == 0 {
		err = fmt.Errorf("%w: %s names no stores", seq.ErrNoQuorum, o.Addr)
	}
	return addrs, err
}

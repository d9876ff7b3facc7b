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

// askRoutes gets the mapping and the route table from a router or AllocSvr.
func askRoutes(ctx context.Context, addr string, dial ...grpc.DialOption) (*cluster, error) {
	conn, err := rpc.Dial(addr, dial...)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	reply, err := pb.NewSequenceClient(conn).Routes(ctx, &pb.RoutesRequest{})
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

// onNode calls do with a connection to an AllocSvr's Admin service.
func onNode(ctx context.Context, addr string, dial []grpc.DialOption, do func(ctx context.Context, admin pb.AdminClient) error) error {
	conn, err := rpc.Dial(addr, dial...)
	if err != nil {
		return err
	}
	defer conn.Close()
	return plain(addr, do(ctx, pb.NewAdminClient(conn)))
}

// onAnyNode finds an AllocSvr that answers, by the routes that --addr has, and calls
// do on that one only: a change is never tried on a second node.
func onAnyNode(ctx context.Context, o *Options, do func(ctx context.Context, admin pb.AdminClient) error) error {
	c, err := askRoutes(ctx, o.Addr, o.Dial()...)
	if err != nil {
		return err
	}
	var last error
	for _, node := range c.table.Nodes {
		probe, cancel := context.WithTimeout(ctx, routesAttempt)
		_, last = askRoutes(probe, node.Addr, o.Dial()...)
		cancel()
		if last == nil {
			return onNode(ctx, node.Addr, o.Dial(), do)
		}
	}
	if last == nil {
		last = seq.ErrNoRoute
	}
	return fmt.Errorf("none of %d AllocSvr answers: %w", len(c.table.Nodes), last)
}

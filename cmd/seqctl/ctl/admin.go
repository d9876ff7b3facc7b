package ctl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// routesAttempt bounds asking one node, which tells its routes at once if it is alive.
const routesAttempt = time.Second

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
func askRoutes(ctx context.Context, o *Options, addr string) (*survey.Cluster, error) {
	conns := survey.NewConns(o.Dial()...)
	defer conns.Close()
	c, err := survey.Routes(ctx, conns, addr)
	return c, plain(addr, err)
}

// routes asks the addresses in their order, until one answers, and stays with that one.
func (o *Options) routes(ctx context.Context) (*survey.Cluster, error) {
	if o.found {
		return askRoutes(ctx, o, o.Addr)
	}
	var wrong []string
	for _, addr := range o.Addrs {
		probe, cancel := context.WithTimeout(ctx, routesAttempt)
		c, err := askRoutes(probe, o, addr)
		cancel()
		if err == nil {
			o.Addr, o.found = addr, true
			return c, nil
		}
		wrong = append(wrong, err.Error())
	}
	return nil, fmt.Errorf("%w at any of %d addresses: %s", errNoAnswer, len(o.Addrs), strings.Join(wrong, "; "))
}

// Seed returns the address of --addr that is asked: of several the first one that answers.
func (o *Options) Seed(ctx context.Context) (string, error) {
	if o.found {
		return o.Addr, nil
	}
	_, err := o.routes(ctx)
	return o.Addr, err
}

// nodeNames returns the AllocSvr of the route table.
func nodeNames(c *survey.Cluster) (names []string) {
	for _, n := range c.Table.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// nameNodes adds to seq.ErrUnknownNode which nodes there are.
func nameNodes(c *survey.Cluster, err error) error {
	if !errors.Is(err, seq.ErrUnknownNode) {
		return err
	}
	return fmt.Errorf("%w, expected one of %s", err, strings.Join(nodeNames(c), ", "))
}

// onNode calls a method of an AllocSvr's Admin service.
func onNode[Q, R any](ctx context.Context, o *Options, addr string, method func(pb.AdminClient, context.Context, *Q, ...grpc.CallOption) (*R, error), req *Q) (*R, error) {
	reply, err := Call(ctx, o, addr, pb.NewAdminClient, method, req)
	return reply, plain(addr, err)
}

// onAnyNode finds an AllocSvr that answers, by the routes that --addr has, and calls the
// method on that one only: a change is never tried on a second node.
func onAnyNode[Q, R any](ctx context.Context, o *Options, method func(pb.AdminClient, context.Context, *Q, ...grpc.CallOption) (*R, error), req *Q) (*R, error) {
	c, err := o.routes(ctx)
	if err != nil {
		return nil, err
	}
	last := seq.ErrNoRoute
	for _, node := range c.Table.Nodes {
		probe, cancel := context.WithTimeout(ctx, routesAttempt)
		_, last = askRoutes(probe, o, node.Addr)
		cancel()
		if last == nil {
			reply, err := onNode(ctx, o, node.Addr, method, req)
			return reply, nameNodes(c, err)
		}
	}
	return nil, fmt.Errorf("none of %d AllocSvr answers: %w", len(c.Table.Nodes), last)
}

// StoreAddrs returns the gRPC addresses of the stores, as an AllocSvr that the router or
// AllocSvr at --addr leads to knows them.
func StoreAddrs(ctx context.Context, o *Options) ([]string, error) {
	reply, err := onAnyNode(ctx, o, pb.AdminClient.Status, &pb.StatusRequest{})
	var addrs []string
	for _, s := range reply.GetStores() {
		if prefix := s.GetEtcd().GetPrefix(); prefix != "" {
			return nil, daemon.Usage(fmt.Errorf("cluster %s is on etcd: give --etcd %s --etcd-prefix %s", reply.GetClusterId(), s.GetAddr(), prefix))
		}
		addrs = append(addrs, s.GetAddr())
	}
	if err == nil && len(addrs) == 0 {
		err = fmt.Errorf("%w: %s names no stores", seq.ErrNoQuorum, o.Addr)
	}
	return addrs, err
}

package ctl

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// node is a made-up AllocSvr that answers from fields and keeps the changes that it is
// asked for.
type node struct {
	pb.UnimplementedAdminServer
	pb.UnimplementedSequenceServer
	addr   string
	routes *pb.RoutesReply
	status *pb.StatusReply
	leases []*pb.LeaseInfo
	events []*pb.Event

	mu      sync.Mutex // guards changes
	changes []any
}

func (n *node) Routes(context.Context, *pb.RoutesRequest) (*pb.RoutesReply, error) {
	return n.routes, nil
}

func (n *node) Status(context.Context, *pb.StatusRequest) (*pb.StatusReply, error) {
	return n.status, nil
}

func (n *node) Leases(_ context.Context, req *pb.LeasesRequest) (*pb.LeasesReply, error) {
	n.change(req)
	return &pb.LeasesReply{Leases: n.leases}, nil
}

func (n *node) Events(_ context.Context, req *pb.EventsRequest) (*pb.EventsReply, error) {
	n.change(req)
	return &pb.EventsReply{Events: n.events}, nil
}

func (n *node) Drain(_ context.Context, req *pb.DrainRequest) (*pb.ChangeReply, error) {
	n.change(req)
	if req.GetNode() == "nobody" {
		return nil, seq.ErrUnknownNode
	}
	return &pb.ChangeReply{RouteVersion: 8, Moved: 4}, nil
}

func (n *node) Move(_ context.Context, req *pb.MoveRequest) (*pb.ChangeReply, error) {
	n.change(req)
	return &pb.ChangeReply{RouteVersion: 8, Moved: 1}, nil
}

func (n *node) Rehash(_ context.Context, req *pb.RehashRequest) (*pb.RehashReply, error) {
	n.change(req)
	return &pb.RehashReply{Version: 2}, nil
}

func (n *node) Rebalance(_ context.Context, req *pb.RebalanceRequest) (*pb.ChangeReply, error) {
	n.change(req)
	return &pb.ChangeReply{RouteVersion: 9}, nil
}

func (n *node) change(req any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes = append(n.changes, req)
}

// serve starts a node that owns sections 0 to 3 of 8; "gone" owns the others and does
// not answer, where there is one.
func serve(t *testing.T, others ...seq.Node) *node {
	t.Helper()
	return serveBy(t, gate.ServerConfig{}, others...)
}

// serveBy is serve with a server of one's own making.
func serveBy(t *testing.T, cfg gate.ServerConfig, others ...seq.Node) *node {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mapping, err := seq.NewMapping(seq.Space{Name: seq.DefaultSpace, Sections: 8})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{addr: lis.Addr().String()}
	table := &seq.RouteTable{Version: 7, Nodes: append([]seq.Node{{Name: "a", Addr: n.addr, Session: 1, Weight: 100}}, others...)}
	for i := range 8 {
		p := seq.Placement{Owner: 0, Standby: seq.NoNode, Standby2: seq.NoNode}
		if len(others) > 0 && i >= 4 {
			p.Owner, p.Standby = 1, 0
		}
		table.Sections = append(table.Sections, p)
	}
	n.routes = &pb.RoutesReply{ClusterId: "test", Routes: rpc.RoutesToProto(table), Mapping: rpc.MappingToProto(mapping), RouteVersion: 7}
	n.status = &pb.StatusReply{
		ClusterId: "test", Era: 1, Node: "a", Session: 1, RouteVersion: 7, Sections: 8, SectionsOwned: 8, Ready: true, LeaseUs: 1_000_000,
		Stores: []*pb.StoreStatus{
			{Uuid: "u1", Addr: "s1:1", Reachable: true, State: "voting"},
			{Uuid: "u2", Addr: "s2:1", Reachable: true, State: "voting"},
			{Uuid: "u3", Addr: "s3:1", Reachable: true, State: "voting"},
		},
		Members: []*pb.MemberStatus{
			{Name: "s1", Role: "store", State: "alive", Addr: "s1:1", LeaseLeftMs: -1},
			{Name: "a", Role: "alloc", State: "alive", Addr: n.addr, Session: 1, SectionsOwned: 8, LeaseLeftMs: 900},
		},
	}
	srv := gate.NewServer(cfg)
	pb.RegisterAdminServer(srv, n)
	pb.RegisterSequenceServer(srv, n)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(lis)
	}()
	t.Cleanup(func() { srv.Stop(); <-done })
	return n
}

package survey

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestAStatusTellsWhatNodesRefusedAndWhom(t *testing.T) {
	s := &Survey{Cluster: &Cluster{Table: &seq.RouteTable{Nodes: []seq.Node{{Name: "alloc-1"}, {Name: "alloc-2"}, {Name: "before"}}}, Mapping: seq.Mapping{}},
		Replies: map[string]*pb.StatusReply{
			"alloc-1": {Refused: []*pb.Refusal{{Reason: "quota", Address: "10.0.0.7", Count: 300}, {Reason: "foreign", Address: "10.0.0.8", Count: 9}},
				Stores: []*pb.StoreStatus{{Name: "store-1", Reachable: true, Refused: []*pb.Refusal{{Reason: "unfinished", Address: "other", Count: 4000}}}}},
			"alloc-2": {Refused: []*pb.Refusal{{Reason: "unread", Address: "10.0.0.9", Count: 12}}},
			"before":  {},
		}}
	want := []Refusal{
		{"store", "store-1", "unfinished", "other", 4000}, {"alloc", "alloc-1", "quota", "10.0.0.7", 300},
		{"alloc", "alloc-2", "unread", "10.0.0.9", 12}, {"alloc", "alloc-1", "foreign", "10.0.0.8", 9},
	}
	if diff := cmp.Diff(want, s.refusals()); diff != "" {
		t.Error(diff)
	}
	notes := s.refusalNotes()
	if len(notes) != 3 || !strings.Contains(notes[0], "store store-1 refused 4000 times") || !strings.Contains(notes[1], "quota, from 10.0.0.7") {
		t.Errorf("got %q", notes)
	}
	if all := s.notes(); !slices.Contains(all, notes[0]) {
		t.Errorf("the notes of a status lack %q: %q", notes[0], all)
	}
}

// refuser is a router that refused something.
type refuser struct {
	pb.UnimplementedRouterServer
	name string
}

func (r refuser) Status(context.Context, *pb.RouterStatusRequest) (*pb.RouterStatusReply, error) {
	return &pb.RouterStatusReply{Router: r.name, Refused: []*pb.Refusal{{Reason: "cancelled", Address: r.name, Count: 7}}}, nil
}

func TestAStatusAsksRoutersThatAreAliveWhatTheyRefused(t *testing.T) {
	serve := func(register func(grpc.ServiceRegistrar)) string {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := grpc.NewServer()
		register(srv)
		go func() { _ = srv.Serve(lis) }()
		t.Cleanup(srv.Stop)
		return lis.Addr().String()
	}
	member := func(name, role, state string) *pb.MemberStatus {
		return &pb.MemberStatus{Name: name, Role: role, State: state, Addr: serve(func(to grpc.ServiceRegistrar) { pb.RegisterRouterServer(to, refuser{name: name}) })}
	}
	older := &pb.MemberStatus{Name: "older", Role: "router", State: "alive", Addr: serve(func(grpc.ServiceRegistrar) {})}
	s := &Survey{Cluster: &Cluster{Table: &seq.RouteTable{Nodes: []seq.Node{{Name: "alloc-1"}}}}, Replies: map[string]*pb.StatusReply{"alloc-1": {Members: []*pb.MemberStatus{
		member("r1", "router", "alive"), older, member("gone", "router", "dead"), member("alloc-1", "alloc", "alive"), member("r2", "router", "alive")}}}}
	conns := NewConns()
	defer conns.Close()
	s.AskRouters(t.Context(), conns, time.Minute)
	want := []Refusal{{"router", "r1", "cancelled", "r1", 7}, {"router", "r2", "cancelled", "r2", 7}}
	if diff := cmp.Diff(want, s.refusals()); diff != "" {
		t.Error(diff)
	}
}

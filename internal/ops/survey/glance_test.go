package survey

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// fake is an AllocSvr that counts for what it was asked.
type fake struct {
	pb.UnimplementedAdminServer
	name         string
	fails        error // of the whole
	brief, whole atomic.Int64
}

func (f *fake) Status(_ context.Context, r *pb.StatusRequest) (*pb.StatusReply, error) {
	if r.GetBrief() {
		f.brief.Add(1)
		return &pb.StatusReply{Node: f.name, Ready: true, Brief: true, KeyHashes: []*pb.KeyHash{{Space: "user", Version: 1}}}, nil
	}
	f.whole.Add(1)
	if f.fails != nil {
		return nil, f.fails
	}
	return &pb.StatusReply{Node: f.name, Ready: true, Sections: 7, Stores: []*pb.StoreStatus{{Name: "store-1", Reachable: true, State: "voting"}},
		KeyHashes: []*pb.KeyHash{{Space: "user", Version: 2, Latest: 2}}}, nil
}

// fakes are a cluster of them; the last node answers nothing.
func fakes(t *testing.T, fails ...error) ([]*fake, *Cluster, *Conns) {
	t.Helper()
	c := &Cluster{Table: &seq.RouteTable{}}
	var all []*fake
	for i, err := range fails {
		lis, e := net.Listen("tcp", "127.0.0.1:0")
		if e != nil {
			t.Fatal(e)
		}
		f := &fake{name: string(rune('a' + i)), fails: err}
		srv := grpc.NewServer()
		pb.RegisterAdminServer(srv, f)
		go func() { _ = srv.Serve(lis) }()
		t.Cleanup(srv.Stop)
		all = append(all, f)
		c.Table.Nodes = append(c.Table.Nodes, seq.Node{Name: f.name, Addr: lis.Addr().String()})
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := lis.Addr().String()
	_ = lis.Close()
	c.Table.Nodes = append(c.Table.Nodes, seq.Node{Name: "gone", Addr: gone})
	conns := NewConns()
	t.Cleanup(conns.Close)
	return all, c, conns
}

func TestAGlanceAsksOneNodeForTheWhole(t *testing.T) {
	all, c, conns := fakes(t, nil, nil, nil)
	s := Glance(t.Context(), c, conns, time.Minute)
	var brief, whole int64
	for _, f := range all {
		brief, whole = brief+f.brief.Load(), whole+f.whole.Load()
	}
	if brief != 3 || whole != 1 || len(s.Replies) != 3 || s.Errs["gone"] == nil {
		t.Errorf("%d brief and %d whole answers, %d replies, %v", brief, whole, len(s.Replies), s.Errs)
	}
	if v := s.View(); v.GetBrief() || v.GetSections() != 7 {
		t.Errorf("the view is %v", v)
	}
	behind := 0 // by the word of the one that asked the stores
	for _, tr := range s.nodeTroubles() {
		if tr.cause == keysBehind {
			behind++
		}
	}
	if behind != 2 {
		t.Errorf("%d nodes hash keys as before, want 2", behind)
	}
}

func TestAGlanceAsksAnotherNodeIfOneFails(t *testing.T) {
	fault := errors.New("stores do not answer")
	all, c, conns := fakes(t, fault, nil, fault)
	if s := Glance(t.Context(), c, conns, time.Minute); s.View().GetBrief() || s.View().GetNode() != "b" || all[1].whole.Load() != 1 {
		t.Errorf("the view is %v", s.View())
	}
	_, c, conns = fakes(t, fault, fault)
	s := Glance(t.Context(), c, conns, time.Minute)
	told := slices.ContainsFunc(s.troubles(), func(tr trouble) bool { return strings.Contains(tr.what, "what the stores have") })
	if len(s.Replies) != 2 || !told {
		t.Errorf("got %d replies and %+v", len(s.Replies), s.troubles())
	}
}

package survey

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// twoSets is a cluster of 8 sections, of which the Set at hand, main, has the first two.
func twoSets(t *testing.T) *Cluster {
	t.Helper()
	mapping, err := seq.NewMapping(seq.Space{Name: seq.DefaultSpace, Sections: 8})
	if err != nil {
		t.Fatal(err)
	}
	m := sets.Map{Version: 3, Sets: []sets.Set{{Name: "main", Cluster: "a"}, {Name: "b", Cluster: "b", Addrs: []string{"127.0.0.1:1"}}},
		In: []uint16{0, 0, 1, 1, 1, 1, 1, 1}, By: make([]uint64, 8), Ceilings: make([]uint64, 8)}
	return &Cluster{ID: "a", Set: "main", Sets: m, Mapping: mapping, Table: &seq.RouteTable{Nodes: []seq.Node{{Name: "alloc-1", Addr: "127.0.0.1:1"}}}}
}

func TestASectionOfAnotherSetIsElsewhere(t *testing.T) {
	c := twoSets(t)
	if s, elsewhere := c.Elsewhere(1); elsewhere {
		t.Errorf("section 1 is in %+v", s)
	}
	if s, elsewhere := c.Elsewhere(2); !elsewhere || s.Name != "b" {
		t.Errorf("section 2 is in %+v, elsewhere %v", s, elsewhere)
	}
	if got := c.Here(); got != 2 {
		t.Errorf("%d sections are here, want 2", got)
	}
	c.Set, c.Sets = "", sets.Map{}
	if _, elsewhere := c.Elsewhere(2); elsewhere || c.Here() != 8 {
		t.Errorf("alone: %d sections here, section 2 elsewhere %v", c.Here(), elsewhere)
	}
}

func TestOnlyAMoveThatIsOpenForLongIsATrouble(t *testing.T) {
	now := time.Now()
	s := newSurvey(twoSets(t))
	s.Cluster.Sets.Moves = []sets.Move{
		{ID: 4, From: "b", To: "main", Sections: []sets.Range{{First: 2, Sections: 2}}, Begun: now.Add(-2 * time.Minute).UnixMilli()},
		{ID: 5, From: "b", To: "main", Sections: []sets.Range{{First: 4, Sections: 1}}, Begun: now.Add(-time.Second).UnixMilli()},
	}
	got := s.moveTroubles(now)
	if len(got) != 1 || got[0].breaks || got[0].do != "seqctl set move --id 4" || !strings.Contains(got[0].what, "move 4 of 2 sections from Set b to main") || !strings.Contains(got[0].why, "abort --id 4") {
		t.Errorf("got %+v", got)
	}
}

func TestASetThatDoesNotAnswerIsToldIfItHasSections(t *testing.T) {
	for sections, breaks := range map[bool]bool{true: true, false: false} {
		c, conns := twoSets(t), NewConns()
		defer conns.Close()
		if !sections {
			c.Sets.In = nil
		}
		s := Whole(t.Context(), c, conns, time.Second, func(context.Context, *Cluster, *Conns, time.Duration) *Survey {
			own := newSurvey(c)
			own.Replies["alloc-1"] = &pb.StatusReply{Ready: true}
			return own
		})
		told := s.setTroubles()
		if len(told) != 1 || told[0].breaks != breaks || told[0].what != "Set b: none of 1 AllocSvr answers" || told[0].do != "on 127.0.0.1:1: systemctl start seqsvr-allocsvr" {
			t.Errorf("with sections %v: got %+v", sections, told)
		}
		got := s.Judge()
		if want := c.Mapping.Sections() - c.Here(); len(got.Sets) != 2 || got.Sets[0].Health != Healthy || got.Sets[1].Health != Failed || int(got.Sets[1].Unowned) != want || int(got.Unowned) != want {
			t.Errorf("with sections %v: got %+v, %d unowned of all, want those of Set b", sections, got.Sets, got.Unowned)
		}
		if len(got.Allocs) != 2 || got.Allocs[0].Set != "main" || got.Allocs[1].Set != "b" || got.Allocs[1].State != "no answer" {
			t.Errorf("with sections %v: got %+v, want the AllocSvr of both Sets", sections, got.Allocs)
		}
	}
}

// TestANodeThatHangsKeepsNoOtherFromBeingAsked has the first address of a Set take calls and never answer.
func TestANodeThatHangsKeepsNoOtherFromBeingAsked(t *testing.T) {
	hangs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := grpc.NewServer()
	pb.RegisterSequenceServer(silent, routesOf{})
	go func() { _ = silent.Serve(hangs) }()
	defer silent.Stop()
	mapping, table := twoSets(t).Mapping, &seq.RouteTable{Version: 1, Nodes: []seq.Node{{Name: "alloc-1", Addr: "127.0.0.1:1", Session: 1, Weight: 1}}, Sections: make([]seq.Placement, 8)}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	pb.RegisterSequenceServer(srv, routesOf{reply: &pb.RoutesReply{ClusterId: "b", Mapping: rpc.MappingToProto(mapping), Routes: rpc.RoutesToProto(table)}})
	go func() { _ = srv.Serve(lis) }()
	defer srv.Stop()
	conns := NewConns()
	defer conns.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	addrs := []string{hangs.Addr().String(), lis.Addr().String()}
	if got, errs := firstOf(ctx, conns, addrs, "b"); got == nil || ctx.Err() != nil {
		t.Errorf("got no answer beside a node that hangs: %v", errs)
	}
	got, errs := firstOf(ctx, conns, addrs[1:], "c")
	if got != nil || !errors.Is(errs[addrs[1]], errOtherCluster) {
		t.Errorf("got %+v of another cluster, errors %v", got, errs)
	}
}

// routesOf is a node that tells its routes, or never answers without any.
type routesOf struct {
	pb.UnimplementedSequenceServer
	reply *pb.RoutesReply
}

func (r routesOf) Routes(ctx context.Context, _ *pb.RoutesRequest) (*pb.RoutesReply, error) {
	if r.reply == nil {
		<-ctx.Done()
	}
	return r.reply, ctx.Err()
}

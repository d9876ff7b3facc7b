package router_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

func TestARouterTellsTheLifeThatItHoldsToAndGoesOverToANewEra(t *testing.T) {
	old := seq.Incarnation{Cluster: seq.ClusterID{1}, Binding: seq.ClusterID{1}}
	next := seq.Incarnation{Cluster: seq.ClusterID{1}, Era: 1, Binding: seq.ClusterID{2}}
	other := seq.Incarnation{Cluster: seq.ClusterID{3}, Binding: seq.ClusterID{3}}
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 4})
	cluster.Live(old)
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	c := sequenceOf(t, r.Addr())
	routes := func() *pb.RoutesReply {
		t.Helper()
		reply, err := c.Routes(bounded(t), &pb.RoutesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	// call is a call of a caller that holds to a life.
	call := func(life seq.Incarnation) error {
		conn, err := rpc.Dial(r.Addr(), rpc.SayTarget(func() *rpc.Target { return rpc.NewTarget(cluster.ID, life) }))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = pb.NewSequenceClient(conn).Next(bounded(t), &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 7}})
		return err
	}
	before := routes()
	if got := rpc.IncarnationFromProto(before.GetIncarnation()); got != old {
		t.Fatalf("the router tells %v, expected %v", got, old)
	}
	if err := errors.Join(call(seq.Incarnation{}), call(old)); err != nil {
		t.Fatal(err)
	}
	if err := call(other); !errors.Is(err, seq.ErrForeignCluster) {
		t.Fatalf("a call for another cluster: %v", err)
	}

	// The table of the new era is another one with the same version.
	cluster.TakeOver(0, 1)
	cluster.Publish()
	cluster.Live(next)
	if err := call(seq.Incarnation{}); err != nil {
		t.Fatal(err)
	}
	after := routes()
	if got := rpc.IncarnationFromProto(after.GetIncarnation()); got != next || slices.Equal(after.GetRoutes().GetOwner(), before.GetRoutes().GetOwner()) || after.GetRouteVersion() != before.GetRouteVersion() {
		t.Fatalf("after the restore: %v, table %v", got, after.GetRoutes())
	}
	if err := call(old); !errors.Is(err, seq.ErrStaleEra) {
		t.Fatalf("a call for the old era: %v", err)
	}
	if err := call(next); err != nil {
		t.Fatal(err)
	}
}

package allocsvr

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

func TestNodesTellTheirZonesAndStandbysAreInOthers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 48})
		f.zones = map[string]string{"n1": "a", "n2": "a", "n3": "b"}
		n1, n2, n3 := f.start("n1", 3, ""), f.start("n2", 3, ""), f.start("n3", 3, "")
		told := func(by *node) func() bool {
			return func() bool {
				table := by.routes.Table()
				if table == nil {
					return false
				}
				for _, n := range table.Nodes {
					if n.Zone != f.zones[n.Name] {
						return false
					}
				}
				return len(table.Nodes) == 3 && table.Together() == 0
			}
		}
		f.until("the table has zones, and standbys go by them", told(n1))
		f.serving(n1, n2, n3)

		f.leave(n2)
		f.zones["n2"] = "c"
		n2 = f.start("n2", 3, "")
		f.until("a node that comes back elsewhere says so", told(n3))

		n1.kill() // with its zone: the others have all of it
		f.serving(n2, n3)
		f.next(7)
	})
}

// fellow is a store that tells where its fellows are.
type fellow struct {
	pb.UnimplementedStoreServer
	reply *pb.DescribeReply
}

func (f fellow) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeReply, error) {
	return f.reply, nil
}

func TestAStoreThatDoesNotAnswerIsWhereTheOthersSay(t *testing.T) {
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: 1})
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterStoreServer(server, fellow{reply: &pb.DescribeReply{StoreUuid: "u1", Name: "a", Zone: "za now", Mapping: rpc.MappingToProto(mapping),
		Members: []*pb.StoreMember{{Uuid: "u1", Zone: "za"}, {Uuid: "u2", Zone: "zb"}}}})
	go func() { _ = server.Serve(lis) }()
	t.Cleanup(server.Stop)
	var stores []storeclient.Named
	for i, addr := range []string{lis.Addr().String(), "127.0.0.1:1"} { // nothing listens at the second
		client, err := storeclient.Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		stores = append(stores, storeclient.Named{Addr: addr, UUID: []string{"u1", "u2"}[i], Client: client})
	}
	got := describeStores(t.Context(), stores)
	if !got[0].GetReachable() || got[0].GetZone() != "za now" || got[1].GetReachable() || got[1].GetZone() != "zb" {
		t.Errorf("got %v, want the first in zone %q and the second, which is away, in %q", got, "za now", "zb")
	}
}

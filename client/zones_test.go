package client

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// placed is a server that says in which zone it is.
type placed struct {
	pb.UnimplementedSequenceServer
	zone atomic.Value
}

func (p *placed) Routes(context.Context, *pb.RoutesRequest) (*pb.RoutesReply, error) {
	return &pb.RoutesReply{Zone: p.zone.Load().(string)}, nil
}

// The process at an address may be another one, in another zone; what does not answer is where it
// was, so that a zone whose routers restart has its callers back at once.
func TestAnAddressIsInTheZoneThatItSaidLast(t *testing.T) {
	var addrs []string
	var all []*placed
	var stops []func()
	for range 3 {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p, server := &placed{}, grpc.NewServer()
		pb.RegisterSequenceServer(server, p)
		go func() { _ = server.Serve(lis) }()
		t.Cleanup(server.Stop)
		addrs, all, stops = append(addrs, lis.Addr().String()), append(all, p), append(stops, server.Stop)
	}
	c, err := New(t.Context(), Config{Addrs: addrs, Lazy: true, Indirect: true, Timeout: time.Minute, AttemptTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.cfg.Zone = "a" // without the goroutine that asks by itself
	check := func(what string, complete bool, near ...int) {
		t.Helper()
		if got := c.servers.askZones(); got != complete {
			t.Errorf("%s: all have answered: %t, want %t", what, got, complete)
		}
		o := c.servers.order.Load()
		if len(o.near) != len(near) || len(o.near)+len(o.far) != len(addrs) {
			t.Errorf("%s: %d near and %d far, want %d near of %d", what, len(o.near), len(o.far), len(near), len(addrs))
			return
		}
		for i, at := range near {
			if o.near[i].addr != addrs[at] {
				t.Errorf("%s: %s is near, want %s", what, o.near[i].addr, addrs[at])
			}
		}
	}
	say := func(zones ...string) {
		for i, zone := range zones {
			all[i].zone.Store(zone)
		}
	}
	say("a", "b", "")
	check("at first", true, 0)
	say("b", "a", "a")
	check("moved", true, 1, 2)
	say("", "b", "b")
	check("none is left", true)
	say("b", "a", "b")
	check("one is back", true, 1)
	stops[1]()
	stops[2]()
	check("it does not answer", false, 1)
}

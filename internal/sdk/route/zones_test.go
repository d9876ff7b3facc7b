package route

import (
	"errors"
	"testing"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// The process at an address may be another one, in another zone; what does not answer is where it
// was, so that a zone whose routers restart has its callers back at once.
func TestAnAddressIsInTheZoneThatItSaidLast(t *testing.T) {
	addrs, peers := []string{"x", "y", "z"}, map[string]*peer{}
	zones := make([]string, len(addrs))
	table := bare(Config{Zone: "a", Indirect: true, Addrs: addrs})
	table.cfg.Dial = func(to *Server) (Peer, error) {
		at := len(peers)
		peers[to.Addr] = &peer{routes: func() (*pb.RoutesReply, error) { return &pb.RoutesReply{Zone: zones[at]}, nil }}
		return peers[to.Addr], nil
	}
	if err := table.servers.open(table); err != nil {
		t.Fatal(err)
	}
	check := func(what string, complete bool, near ...int) {
		t.Helper()
		if got := table.servers.askZones(); got != complete {
			t.Errorf("%s: all have answered: %t, want %t", what, got, complete)
		}
		o := table.servers.order.Load()
		if len(o.near) != len(near) || len(o.near)+len(o.far) != len(addrs) {
			t.Errorf("%s: %d near and %d far, want %d near of %d", what, len(o.near), len(o.far), len(near), len(addrs))
			return
		}
		for i, at := range near {
			if o.near[i].Addr != addrs[at] {
				t.Errorf("%s: %s is near, want %s", what, o.near[i].Addr, addrs[at])
			}
		}
	}
	say := func(all ...string) { copy(zones, all) }
	say("a", "b", "")
	check("at first", true, 0)
	say("b", "a", "a")
	check("moved", true, 1, 2)
	say("", "b", "b")
	check("none is left", true)
	say("b", "a", "b")
	check("one is back", true, 1)
	for _, addr := range addrs[1:] {
		peers[addr].routes = func() (*pb.RoutesReply, error) { return nil, errors.New("no answer") }
	}
	check("it does not answer", false, 1)
}

func TestAddressesOfTheOwnZoneComeFirstInEachPassOverAll(t *testing.T) {
	at := func(addrs string) (out []*Server) {
		for _, a := range addrs {
			out = append(out, &Server{Addr: string(a)})
		}
		return out
	}
	for _, row := range []struct {
		near, far string
		indirect  bool
		want      []string // by round: what the passes of three rounds ask
	}{
		{"", "xyz", true, []string{"xyz", "yzx", "zxy"}},
		{"z", "xy", true, []string{"zxy", "zyx", "zxy"}},
		{"yz", "x", true, []string{"yzx", "zyx", "yzx"}},
		{"xyz", "", true, []string{"xyz", "yzx", "zxy"}},
		{"", "xyz", false, []string{"x", "y", "z"}}, // one a round, so that all have their turn
		{"z", "xy", false, []string{"z", "x", "y"}},
	} {
		table := bare(Config{Indirect: row.indirect})
		table.servers.t, table.servers.seeds = table, at(row.near+row.far)
		table.servers.order.Store(&order{near: at(row.near), far: at(row.far)})
		for round, want := range row.want {
			asked := ""
			for step := range table.servers.perRound() {
				asked += table.servers.last(0, round, step).Addr
			}
			if asked != want {
				t.Errorf("near %q, far %q, round %d: asked %q, want %q", row.near, row.far, round, asked, want)
			}
		}
	}
}

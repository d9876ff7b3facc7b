package route

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// nobody cares for no Set.
type nobody struct{}

func (nobody) Run()                  {}
func (nobody) Hear(error)            {}
func (nobody) Lost() <-chan struct{} { return nil }
func (nobody) Reason() error         { return nil }

// bare is a Table without connections, that takes a wish for a newer one.
func bare(cfg Config) *Table {
	cfg.Context, cfg.Go, cfg.Watch = context.Background(), func(func()) {}, func(*Set) Care { return nobody{} }
	cfg.Logger = slog.New(slog.DiscardHandler)
	return empty(cfg)
}

// peer is a server that answers what is given.
type peer struct {
	routes func() (*pb.RoutesReply, error)
	silent bool
}

func (p *peer) Routes(context.Context, time.Duration, *pb.RoutesRequest) (*pb.RoutesReply, error) {
	return p.routes()
}
func (p *peer) Silent() bool { return p.silent }
func (*peer) HangUp()        {}
func (*peer) Close(error)    {}

// aView has Set 0 with nodes a, b and Set 1 with c, d; of the latter's table section 3 is not
// known yet. Set 2 is not known at all.
func aView() *View {
	tables := []*seq.RouteTable{
		{Version: 1, Sections: []seq.Placement{{Owner: 0, Standby: 1, Standby2: -1}, {Owner: 0, Standby: 1, Standby2: -1}, {Owner: 1, Standby: -1, Standby2: 0}, {Owner: 1, Standby: -1, Standby2: -1}}},
		{Version: 9, Sections: []seq.Placement{{Owner: 1, Standby: 0, Standby2: -1}, {Owner: 1, Standby: 0, Standby2: -1}, {Owner: 0, Standby: -1, Standby2: -1}}},
		nil,
	}
	var parts []Part
	for i, names := range []string{"ab", "cd", ""} {
		p := Part{Of: &Set{}, Routes: tables[i]}
		for _, name := range names {
			p.Nodes = append(p.Nodes, &Server{Addr: string(name)})
		}
		parts = append(parts, p)
	}
	return NewView(1, seq.Mapping{}, sets.Map{Version: 1, Sets: make([]sets.Set, 3), In: []uint16{1, 2, 0, 1}}, parts)
}

func TestSectionsHaveTheirServersFromTheTableOfTheirSet(t *testing.T) {
	v := aView()
	show := func(all [1 + Standbys]*Server) (text string) {
		for _, s := range all {
			if s == nil {
				text += "-"
			} else {
				text += s.Addr
			}
		}
		return text
	}
	for id, want := range []string{"dc-", "---", "b-a", "---", "---"} {
		if got := show(v.Candidates(seq.SectionID(id))); got != want {
			t.Errorf("section %d: got %s, want %s", id, got, want)
		}
		if s := v.Owner(seq.SectionID(id)); s != v.Candidates(seq.SectionID(id))[0] {
			t.Errorf("section %d: owner %v", id, s)
		}
	}
	if got := show(v.Root().Candidates(0)); got != "ab-" {
		t.Errorf("section 0 in the root: got %s", got)
	}
}

func TestTheMapOnlyRisesAndKeepsTheSetsThatAreKnown(t *testing.T) {
	table := bare(Config{Indirect: true}) // no connections are made
	table.home.is.Store(&sets.Set{Cluster: "one"})
	m := func(version uint64, clusters ...string) (m sets.Map) {
		m.Version = version
		for _, one := range clusters {
			m.Sets = append(m.Sets, sets.Set{Name: one, Cluster: one})
		}
		return m
	}
	for _, row := range []struct {
		m     sets.Map
		taken bool
	}{{m(4, "two", "three"), false}, {m(2, "two", "one"), true}, {m(2, "one"), false}, {m(1, "one"), false}, {m(3, "two", "one", "three"), true}, {m(2, "two", "one"), false}} {
		before := table.sets.Version
		if got := table.adoptMap(row.m); got != row.taken || (table.sets.Version == row.m.Version) != (row.taken || before == row.m.Version) {
			t.Errorf("map %d: taken %v, then at %d", row.m.Version, got, table.sets.Version)
		}
	}
}

func TestSearchesForAMapGrowRarerUntilOneIsFound(t *testing.T) {
	var s search
	begun := time.Now()
	times := func(from, to time.Duration) (all []time.Duration) {
		for at := from; at < to; at += 10 * time.Millisecond {
			if s.due(begun.Add(at)) {
				all = append(all, at/time.Millisecond)
			}
		}
		return all
	}
	if got, want := times(0, 4*time.Second), []time.Duration{0, 50, 150, 350, 750, 1550, 2550, 3550}; !slices.Equal(got, want) {
		t.Errorf("searches at %d, want %d", got, want)
	}
	s.found()
	if got, want := times(4*time.Second, 5*time.Second), []time.Duration{4550, 4600, 4700, 4900}; !slices.Equal(got, want) {
		t.Errorf("after one was found: %d, want %d", got, want)
	}
	if got, want := times(20*time.Second, 20*time.Second+200*time.Millisecond), []time.Duration{20000, 20050, 20150}; !slices.Equal(got, want) {
		t.Errorf("another time: %d, want %d", got, want)
	}
}

func TestCallsThatBringNoMapHaveItLookedForNowAndThen(t *testing.T) {
	now := time.Now()
	table := bare(Config{})
	poked := func() bool {
		select {
		case <-table.home.stale:
			return true
		default:
			return false
		}
	}
	table.looked.Store(now.UnixNano())
	if table.Glance(now.Add(glanceEvery)); poked() {
		t.Error("looked for too early")
	}
	table.Glance(now.Add(glanceEvery + time.Second))
	table.Glance(now.Add(glanceEvery + 2*time.Second))
	if !poked() || poked() {
		t.Error("not looked for, or twice")
	}
}

// A table is asked for at all addresses, then at the nodes; those that are silent come last.
func TestATableIsAskedForAtSilentServersLast(t *testing.T) {
	for doubted, want := range map[string]string{"": "sabcde", "sa": "bcdesa"} {
		asked := ""
		table := bare(Config{})
		server := func(name string) *Server {
			return &Server{Addr: name, t: table, Peer: &peer{silent: strings.Contains(doubted, name), routes: func() (*pb.RoutesReply, error) {
				asked += name
				return nil, seq.ErrNoRoute
			}}}
		}
		table.servers.t, table.servers.seeds = table, []*Server{server("s")}
		table.servers.order.Store(&order{far: table.servers.seeds})
		for _, name := range "abcde" {
			table.home.nodes = append(table.home.nodes, server(string(name)))
		}
		table.home.ask(func(error) bool { return false })
		if asked != want {
			t.Errorf("%q are silent: asked %s, want %s", doubted, asked, want)
		}
	}
}

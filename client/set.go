package client

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// idlePause is the longest time between two fetches from a Set whose table is not known.
const idlePause = time.Second

// set is one Set, a whole cluster, or the only one. Each looks after its own table by a
// goroutine of its own, so that one that does not answer holds up no other.
type set struct {
	c       *Client
	is      atomic.Pointer[sets.Set] // its name, cluster and addresses, as far as they are known
	version atomic.Uint64            // of routes; 0: none, which asks servers to send no table
	stale   chan struct{}            // cap 1: asks for a newer table, or map
	outage  *outage
	held    atomic.Pointer[held] // never nil

	// relay is the address of Config that had the last answer for the Set and is none of its nodes,
	// as a router's; nil: none had. relays has one call at a time see whether another one does.
	relay  atomic.Pointer[server]
	relays health

	// Guarded by table.mu.
	routes *seq.RouteTable
	nodes  []*server // one a node of routes; nil when it has no usable address
	starts []*server // at the addresses of the map
}

func newSet(c *Client, is sets.Set) *set {
	s := &set{c: c, stale: make(chan struct{}, 1), outage: newOutage()}
	s.is.Store(&is)
	s.held.Store(&held{rpc.NewTarget(cmp.Or(is.Cluster, c.cfg.ClusterID), is.Incarnation), byMap})
	return s
}

// begin starts what looks after the Set. From a goroutine of the Client.
func (s *set) begin() {
	s.c.tasks.Go(s.refreshLoop)
	s.c.tasks.Go(s.watch)
}

// id is the cluster's id; empty before the first answer.
func (s *set) id() string { return s.is.Load().Cluster }

// poke asks for a newer table or map in the background. It never blocks.
func (s *set) poke() {
	select {
	case s.stale <- struct{}{}:
	default:
	}
}

// connect connects to the addresses of the map. Needs table.mu.
func (s *set) connect(addrs []string) {
	s.starts = nil
	for _, addr := range addrs {
		if one := s.at(addr, addr); one != nil {
			s.starts = append(s.starts, one)
		}
	}
}

// at is the connection to a node of the Set; nil if there can be none.
func (s *set) at(name, addr string) *server {
	one, err := s.c.servers.at(addr)
	if err != nil {
		s.c.cfg.Logger.Warn("node left out", "node", name, "addr", addr, "error", err)
		return nil
	}
	one.of.Store(s)
	one.vouched.Store(s.held.Load())
	return one
}

// adopt takes over the table if it is newer. Needs table.mu.
func (s *set) adopt(table *pb.RouteTable, m seq.Mapping) (newer bool, err error) {
	if table.GetVersion() <= s.version.Load() {
		return false, nil
	}
	routes, err := rpc.RoutesFromProto(table, m)
	if err != nil {
		return false, err
	}
	nodes := make([]*server, len(routes.Nodes))
	for i, n := range routes.Nodes {
		if !s.c.cfg.Indirect && n.Addr != "" {
			nodes[i] = s.at(n.Name, n.Addr)
		}
	}
	s.routes, s.nodes = routes, nodes
	s.version.Store(routes.Version)
	s.c.cfg.Logger.Debug("route table adopted", "set", s.is.Load().Name, "version", routes.Version, "nodes", len(routes.Nodes))
	return true, nil
}

// refreshLoop fetches the first table, and newer ones when asked to.
func (s *set) refreshLoop() {
	t, told := &s.c.table, false
	for {
		if s.seek() && s == t.home && t.view.Load() == nil && !told {
			told = true
			close(t.foreign)
		}
		pause := time.NewTimer(refreshPause)
		select {
		case <-s.c.ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		if t.view.Load() == nil {
			continue
		}
		var again <-chan time.Time
		if s.version.Load() == 0 {
			pause.Reset(idlePause)
			again = pause.C
		}
		select {
		case <-s.c.ctx.Done():
			pause.Stop()
			return
		case <-s.stale:
		case <-again:
		}
		pause.Stop()
	}
}

// seek asks all addresses of Config before there is a table, and later for a newer one. It reports
// what meet and refresh report.
func (s *set) seek() (refused bool) {
	if s == s.c.table.home && s.c.table.view.Load() == nil {
		return s.c.table.meet()
	}
	return s.refresh()
}

// refresh asks for a newer table or map. It says whether all that were asked are of another
// cluster, or do not let this program in.
func (s *set) refresh() (foreign bool) {
	t := &s.c.table
	t.looked.Store(time.Now().UnixNano())
	foreign = true
	old, held := t.view.Load(), s.version.Load()
	s.ask(time.Time{}, func(err error) bool {
		foreign = foreign && anyOf(err, noWay)
		if err != nil {
			t.fault.Store(&err)
		}
		return s.version.Load() != held || t.view.Load().mapped() != old.mapped()
	})
	return foreign
}

// ask fetches from one source after the other, those in doubt last, until one had what is looked
// for, enough have not, all were asked, or the time is up. found is told what became of each.
func (s *set) ask(until time.Time, found func(error) bool) {
	answers := 0
	k := call{c: s.c, rules: &forTable, listed: s.sources(), until: until}
	k.ask = func(ctx context.Context, a *attempt) ([]fault, error) {
		err := s.c.table.fetch(ctx, a.server)
		if got := found(err); err != nil {
			return nil, err
		} else if answers++; !got && answers < enoughAnswers {
			return nil, errNotNewer
		}
		return nil, nil
	}
	_ = k.one(s.c.ctx) // what it found is in the table
}

// mapped is the map's version; 0 without a view.
func (v *view) mapped() uint64 {
	if v == nil {
		return 0
	}
	return v.sets.Version
}

// sources are the servers to ask for a table of the Set: the addresses of Config, unless they
// are of another Set, those of the map, the nodes of the table, and others that are known. Of the
// root those of all other Sets come last: they have the map and the mapping too, if the root is dead.
func (s *set) sources() []*server {
	all, turn := &s.c.servers, int(s.c.turn.Add(1))
	var out []*server
	for i := range all.seeds {
		if one := all.seed(turn, i); one.set() == nil || one.set() == s {
			out = append(out, one)
		}
	}
	out = distinct(out, s.members())
	if s != s.c.table.first() {
		return out
	}
	s.c.table.mu.Lock()
	parts := s.c.table.parts
	s.c.table.mu.Unlock()
	for _, other := range parts {
		out = distinct(out, other.members())
	}
	return out
}

// members are the servers that are of the Set.
func (s *set) members() []*server {
	s.c.table.mu.Lock()
	starts, nodes := s.starts, s.nodes
	s.c.table.mu.Unlock()
	return distinct(starts, nodes, s.c.servers.known(s))
}

// allocs are the AllocSvr of the Set's table; where there are none those of the map, and where
// that has none all that is known of it. An address of Config may be a router's, which answers
// for itself.
func (s *set) allocs() []*server {
	s.c.table.mu.Lock()
	starts, nodes := s.starts, distinct(s.nodes)
	s.c.table.mu.Unlock()
	switch {
	case len(nodes) > 0:
		return nodes
	case len(starts) > 0:
		return starts
	}
	return s.members()
}

// distinct are the servers of some lists, each once.
func distinct(lists ...[]*server) (out []*server) {
	seen := map[*server]bool{nil: true}
	for _, one := range slices.Concat(lists...) {
		if !seen[one] {
			seen[one] = true
			out = append(out, one)
		}
	}
	return out
}

// set is the Set that the server is of; nil if that is not known.
func (s *server) set() *set {
	if of := s.of.Load(); of != nil {
		return of
	}
	if v := s.c.table.view.Load(); v == nil || v.alone() {
		return s.c.table.first()
	}
	return nil
}

// Version is the version of the table of the server's Set; 0 for none.
func (s *server) Version() uint64 {
	if of := s.set(); of != nil {
		return of.version.Load()
	}
	return 0
}

// target is what calls to the server say of the cluster that they are for; nil if the server's Set is
// not known.
func (s *server) target() *rpc.Target {
	if of := s.set(); of != nil {
		return of.held.Load().Target
	}
	return nil
}

// mapPause is the longest time between two searches for a newer map.
const mapPause = time.Second

// search says when a newer map may be asked for. The servers' own may be behind for seconds, in
// which all callers go where NOT_OWNER points; so the pauses between searches that find nothing
// grow.
type search struct {
	mu    sync.Mutex // guards all below
	next  time.Time
	pause time.Duration
}

func (s *search) due(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.next) {
		return false
	}
	if now.Sub(s.next) > mapPause {
		s.pause = 0 // that was another time
	}
	s.pause = min(max(2*s.pause, refreshPause), mapPause)
	s.next = now.Add(s.pause)
	return true
}

// found ends the growth of the pauses.
func (s *search) found() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause = 0
}

// wantMap asks for a newer map: at the root, and at the Set that said something of another, if
// it is not nil, since the root may not answer.
func (t *table) wantMap(said *set) {
	if !t.search.due(time.Now()) {
		return
	}
	t.first().poke()
	if said != nil {
		said.poke()
	}
}

// set is the Set of that name; nil if the map does not have it yet.
func (v *view) set(name string) *set {
	for i, one := range v.sets.Sets {
		if one.Name == name && i < len(v.parts) {
			return v.parts[i].of
		}
	}
	return nil
}

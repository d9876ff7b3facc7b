package route

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// idlePause is the longest time between two fetches from a Set whose table is not known.
const idlePause = time.Second

// Set is one Set, a whole cluster, or the only one. Each looks after its own table by a
// goroutine of its own, so that one that does not answer holds up no other.
type Set struct {
	t       *Table
	is      atomic.Pointer[sets.Set] // its name, cluster and addresses, as far as they are known
	version atomic.Uint64            // of routes; with zero, servers send no table
	stale   chan struct{}            // cap 1: asks for a newer table, or map
	Care    Care                     // whether it is out of service
	held    atomic.Pointer[held]     // never nil

	// Guarded by Table.mu.
	routes *seq.RouteTable
	nodes  []*Server // one a node of routes; nil when it has no usable address
	starts []*Server // at the addresses of the map
}

func newSet(t *Table, is sets.Set) *Set {
	s := &Set{t: t, stale: make(chan struct{}, 1)}
	s.is.Store(&is)
	s.held.Store(&held{rpc.NewTarget(cmp.Or(is.Cluster, t.cfg.ClusterID), is.Incarnation), byMap})
	s.Care = t.cfg.Watch(s)
	return s
}

// begin starts what looks after the Set. From a goroutine of the Client.
func (s *Set) begin() {
	s.t.cfg.Go(s.refreshLoop)
	s.t.cfg.Go(s.Care.Run)
}

// ID is the cluster's id; empty before the first answer.
func (s *Set) ID() string { return s.is.Load().Cluster }

// Version returns the version of its route table. Zero means that no table is known.
func (s *Set) Version() uint64 { return s.version.Load() }

// Poke asks for a newer table or map in the background. It never blocks.
func (s *Set) Poke() {
	select {
	case s.stale <- struct{}{}:
	default:
	}
}

// connect connects to the addresses of the map. Needs Table.mu.
func (s *Set) connect(addrs []string) {
	s.starts = nil
	for _, addr := range addrs {
		if one := s.at(addr, addr); one != nil {
			s.starts = append(s.starts, one)
		}
	}
}

// at is the connection to a node of the Set; nil if there can be none.
func (s *Set) at(name, addr string) *Server {
	one, err := s.t.servers.at(addr)
	if err != nil {
		s.t.cfg.Logger.Warn("node left out", "node", name, "addr", addr, "error", err)
		return nil
	}
	one.of.Store(s)
	one.vouched.Store(s.held.Load())
	return one
}

// adopt takes over the table if it is newer. Needs Table.mu.
func (s *Set) adopt(table *pb.RouteTable, m seq.Mapping) (newer bool, err error) {
	if table.GetVersion() <= s.version.Load() {
		return false, nil
	}
	routes, err := rpc.RoutesFromProto(table, m)
	if err != nil {
		return false, err
	}
	nodes := make([]*Server, len(routes.Nodes))
	for i, n := range routes.Nodes {
		if !s.t.cfg.Indirect && n.Addr != "" {
			nodes[i] = s.at(n.Name, n.Addr)
		}
	}
	s.routes, s.nodes = routes, nodes
	s.version.Store(routes.Version)
	s.t.cfg.Logger.Debug("route table adopted", "set", s.is.Load().Name, "version", routes.Version, "nodes", len(routes.Nodes))
	return true, nil
}

// refreshLoop fetches the first table, and newer ones when asked to.
func (s *Set) refreshLoop() {
	t, told := s.t, false
	for {
		if s.seek() && s == t.home && t.view.Load() == nil && !told {
			told = true
			close(t.foreign)
		}
		pause := time.NewTimer(refreshPause)
		select {
		case <-s.t.cfg.Context.Done():
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
		case <-s.t.cfg.Context.Done():
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
func (s *Set) seek() (refused bool) {
	if s == s.t.home && s.t.view.Load() == nil {
		return s.t.meet()
	}
	return s.refresh()
}

// refresh asks for a newer table or map. It says whether all that were asked are of another
// cluster, or do not let this program in.
func (s *Set) refresh() (foreign bool) {
	t := s.t
	t.looked.Store(time.Now().UnixNano())
	foreign = true
	old, held := t.view.Load(), s.version.Load()
	s.ask(func(err error) bool {
		foreign = foreign && anyOf(err, noWay)
		if err != nil {
			t.fault.Store(&err)
		}
		return s.version.Load() != held || t.view.Load().mapped() != old.mapped()
	})
	return foreign
}

// ask fetches from one source after the other, and from the silent ones last. It stops when found returns
// true, when enough sources had nothing new, or at the end. found receives the error of each fetch.
func (s *Set) ask(found func(error) bool) {
	answers := 0
	enough := func(from *Server) bool {
		err := s.t.fetch(s.t.cfg.Context, from)
		got := found(err)
		if of := from.Set(); errors.Is(err, seq.ErrNoQuorum) && of != nil {
			of.Care.Hear(err)
		}
		if err == nil {
			answers++
		}
		return err == nil && (got || answers >= enoughAnswers) || s.t.cfg.Context.Err() != nil
	}
	var late []*Server
	for _, one := range s.sources() {
		if one.Peer.Silent() {
			late = append(late, one)
		} else if enough(one) {
			return
		}
	}
	for _, one := range late {
		if enough(one) {
			return
		}
	}
}

// mapped is the map's version; 0 without a view.
func (v *View) mapped() uint64 {
	if v == nil {
		return 0
	}
	return v.Sets.Version
}

// sources are the servers to ask for a table of the Set. First come the addresses of Config, unless they
// are of another Set. Then come the Set's addresses in the map, the nodes of its table, and other known
// servers. For the root Set the servers of all other Sets come last: they have the map and the mapping too,
// if the root is dead.
func (s *Set) sources() []*Server {
	all, turn := &s.t.servers, s.t.Turn()
	var out []*Server
	for i := range all.seeds {
		if one := all.seed(turn, i); one.Set() == nil || one.Set() == s {
			out = append(out, one)
		}
	}
	out = Distinct(out, s.members())
	if s != s.t.First() {
		return out
	}
	s.t.mu.Lock()
	parts := s.t.parts
	s.t.mu.Unlock()
	for _, other := range parts {
		out = Distinct(out, other.members())
	}
	return out
}

// members are the servers that are of the Set.
func (s *Set) members() []*Server {
	s.t.mu.Lock()
	starts, nodes := s.starts, s.nodes
	s.t.mu.Unlock()
	return Distinct(starts, nodes, s.t.servers.known(s))
}

// Allocs returns the AllocSvr of the Set's table. Without a table it returns the Set's addresses in the
// map. Without these it returns all known servers of the Set. An address of Config may be a router, which
// answers for itself.
func (s *Set) Allocs() []*Server {
	s.t.mu.Lock()
	starts, nodes := s.starts, Distinct(s.nodes)
	s.t.mu.Unlock()
	switch {
	case len(nodes) > 0:
		return nodes
	case len(starts) > 0:
		return starts
	}
	return s.members()
}

// Distinct are the servers of some lists, each once.
func Distinct(lists ...[]*Server) (out []*Server) {
	seen := map[*Server]bool{nil: true}
	for _, one := range slices.Concat(lists...) {
		if !seen[one] {
			seen[one] = true
			out = append(out, one)
		}
	}
	return out
}

// Set is the Set that the server is of; nil if that is not known.
func (s *Server) Set() *Set {
	if of := s.of.Load(); of != nil {
		return of
	}
	if v := s.t.view.Load(); v == nil || v.Alone() {
		return s.t.First()
	}
	return nil
}

// Version is the version of the table of the server's Set; 0 for none.
func (s *Server) Version() uint64 {
	if of := s.Set(); of != nil {
		return of.version.Load()
	}
	return 0
}

// Target is what calls to the server say of the cluster that they are for; nil if the server's Set is
// not known.
func (s *Server) Target() *rpc.Target {
	if of := s.Set(); of != nil {
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

// WantMap asks for a newer map: at the root, and at the Set that said something of another, if
// it is not nil, since the root may not answer.
func (t *Table) WantMap(said *Set) {
	if !t.search.due(time.Now()) {
		return
	}
	t.First().Poke()
	if said != nil {
		said.Poke()
	}
}

// Set is the Set of that name; nil if the map does not have it yet.
func (v *View) Set(name string) *Set {
	for i, one := range v.Sets.Sets {
		if one.Name == name && i < len(v.Parts) {
			return v.Parts[i].Of
		}
	}
	return nil
}

// Alone says that there is one Set.
func (t *Table) Alone() bool {
	v := t.view.Load()
	return v == nil || v.Alone()
}

// Named says which Set an error is of, if there are several.
func (s *Set) Named(err error) error {
	if s.t.Alone() {
		return err
	}
	return fmt.Errorf("Set %s: %w", s.is.Load().Name, err)
}

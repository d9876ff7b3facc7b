package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// refreshPause is the least time between two fetches of a Set's table: a cluster in
// trouble is not asked by every caller.
const refreshPause = 50 * time.Millisecond

// enoughAnswers is the number of servers without a newer table that ends a search.
const enoughAnswers = 3

// Standbys is the number of standbys that a section has in the table.
const Standbys = 2

// errNotNewer is the answer of a server that has no newer table.
var errNotNewer = errors.New("no newer table")

// Config is what a Table needs to find its cluster.
type Config struct {
	Addrs          []string      // of any AllocSvr or router
	ClusterID      string        // that every server must have, with several Sets the id of any; if empty, the id of the first that answers
	Zone           string        // whose routers among Addrs are asked first; may be empty
	Indirect       bool          // there are Addrs only
	Timeout        time.Duration // of a wait without a deadline
	AttemptTimeout time.Duration
	Logger         *slog.Logger

	Context context.Context                // ends with the Client
	Go      func(func())                   // starts a goroutine of the Client's
	Dial    func(to *Server) (Peer, error) // connects to the address of a server
	Watch   func(of *Set) Care             // begins to care for a Set
}

// Peer is the connection to a server, as this room needs it.
type Peer interface {
	// Routes asks the server once, for as long as limit.
	Routes(ctx context.Context, limit time.Duration, r *pb.RoutesRequest) (*pb.RoutesReply, error)
	// Silent reports whether the last attempt got no answer.
	Silent() bool
	// HangUp ends the open streams. Keys without an answer are asked for again.
	HangUp()
	// Close ends the connection for ErrClosed or ErrGone.
	Close(cause error)
}

// Care says whether a Set is out of service, as this room needs it.
type Care interface {
	// Run looks after the Set until the Client ends.
	Run()
	// Hear notes a seq.ErrNoQuorum.
	Hear(err error)
	// Lost is closed while the Set is out of service.
	Lost() <-chan struct{}
	// Reason returns why the Set is out of service, or nil if it is in service.
	Reason() error
}

// Errors that are found here.
var (
	// ErrClosed: the Client was closed. Do not retry.
	ErrClosed = errors.New("client closed")
	// ErrGone is the cause where nothing names a server any more.
	ErrGone = errors.New("server left the route table")
)

// Table keeps the newest map of Sets, and the newest route table of each.
type Table struct {
	cfg     Config
	servers servers
	turn    atomic.Uint32         // where the next round that asks all in turn begins
	home    *Set                  // of the first server that answers
	view    atomic.Pointer[View]  // nil until the first route table
	ready   chan struct{}         // closed with the first view
	foreign chan struct{}         // closed when all Addrs belong to another cluster, or let this program in nowhere
	fault   atomic.Pointer[error] // why the last fetch failed
	spaces  spaces
	search  search
	looked  atomic.Int64 // when a newer table or map was asked for last, Unix nanoseconds

	mu      sync.Mutex // guards all below, and is held while a view is made, so that versions only rise
	gen     uint64
	mapping seq.Mapping
	sets    sets.Map
	parts   []*Set // by the index of the map; home alone as long as there is none
}

// New connects to the addresses of cfg. Begin starts what keeps the Table.
func New(cfg Config) (*Table, error) {
	t := empty(cfg)
	return t, t.servers.open(t)
}

func empty(cfg Config) *Table {
	t := &Table{cfg: cfg, ready: make(chan struct{}), foreign: make(chan struct{})}
	t.home = newSet(t, sets.Set{})
	t.parts = []*Set{t.home}
	return t
}

// Begin starts the goroutines that keep the Table.
func (t *Table) Begin() {
	t.home.begin()
	t.cfg.Go(t.keepMeeting)
	if t.cfg.Zone != "" && len(t.cfg.Addrs) > 1 {
		t.cfg.Go(t.servers.followZones)
	}
}

// Close ends all connections, and refuses new ones.
func (t *Table) Close() { t.servers.close() }

// View is the newest; nil before the first route table.
func (t *Table) View() *View { return t.view.Load() }

// Turn returns where a round begins that asks all in turn: each begins with another one.
func (t *Table) Turn() int { return int(t.turn.Add(1)) }

// glanceEvery bounds the age of the map of Sets at a Client whose calls bring no newer map, such as calls
// for global IDs. Without it such a Client would not learn of new Sets, and could not use them if its own
// Set is dead.
const glanceEvery = 30 * time.Second

// Glance asks for a newer map in the background if none was asked for in a while.
func (t *Table) Glance(now time.Time) {
	last := t.looked.Load()
	if now.UnixNano()-last > int64(glanceEvery) && t.looked.CompareAndSwap(last, now.UnixNano()) {
		t.First().Poke()
	}
}

// First is the root Set; home as long as it is not known.
func (t *Table) First() *Set {
	if v := t.view.Load(); v != nil {
		return v.Root().Of
	}
	return t.home
}

// Await waits for the first table, until lost is closed or ctx or Config.Timeout ends.
func (t *Table) Await(ctx context.Context, lost <-chan struct{}) error {
	select {
	case <-t.ready:
		return nil
	default:
	}
	ctx, cancel := t.within(ctx)
	defer cancel()
	select {
	case <-t.ready:
		return nil
	case <-t.cfg.Context.Done():
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("wait for the first route table: %w: %w", ctx.Err(), t.why())
	case <-lost:
		return fmt.Errorf("wait for the first route table: %w", cmp.Or(t.home.Care.Reason(), t.why()))
	case <-t.foreign:
		return fmt.Errorf("wait for the first route table: %w", t.why())
	}
}

// why there is no table.
func (t *Table) why() error {
	if last := t.fault.Load(); last != nil {
		return *last
	}
	return seq.ErrNoRoute
}

// within bounds a context without a deadline by Config.Timeout.
func (t *Table) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, t.cfg.Timeout)
}

// Current is the newest view; it waits for the first.
func (t *Table) Current(ctx context.Context) (*View, error) {
	if v := t.view.Load(); v != nil {
		return v, nil
	}
	if err := t.Await(ctx, t.home.Care.Lost()); err != nil {
		return nil, err
	}
	return t.view.Load(), nil
}

// fetch asks one server for a table of its Set, and a map, newer than those at hand. A server of a
// newer era is asked for its table whatever is at hand, because a new era counts tables from the
// beginning.
func (t *Table) fetch(ctx context.Context, s *Server) error {
	a, err := t.ask(ctx, s, s.Version())
	if err == nil && a.reply.GetRoutes() == nil && s.Target().Life().Newer(a.life) {
		a, err = t.ask(ctx, s, 0)
	}
	if err != nil {
		return err
	}
	return t.take(a)
}

// accepts is seq.ErrForeignCluster for a server that is neither of a cluster known here nor, by
// the map that it sent, of one Set among others with it, or that is of another life of a cluster;
// seq.ErrStaleEra for an older era. Needs t.mu.
func (t *Table) accepts(a *answer) error {
	cluster := a.reply.GetClusterId()
	want := t.cfg.ClusterID
	if id := t.home.ID(); id != "" {
		want = id
	}
	if want != "" && cluster != want && !listed(t.sets, cluster) && !(listed(a.sets, cluster) && listed(a.sets, want)) {
		return fmt.Errorf("%w: %q, expected %q", seq.ErrForeignCluster, cluster, want)
	}
	if of := t.part(cluster); of != nil {
		return of.Refuses(a.from, a.life)
	}
	return nil
}

// part is the Set of a cluster; nil if it is not known. Needs t.mu.
func (t *Table) part(cluster string) *Set {
	for _, one := range t.parts {
		if one.ID() == cluster {
			return one
		}
	}
	return nil
}

func listed(m sets.Map, cluster string) bool {
	return slices.ContainsFunc(m.Sets, func(s sets.Set) bool { return s.Cluster == cluster })
}

// adopt takes over what is new in an answer of a server. Needs t.mu.
func (t *Table) adopt(a *answer) error {
	s, cluster := a.from, a.reply.GetClusterId()
	if t.home.ID() == "" {
		t.home.is.Store(&sets.Set{Name: a.reply.GetSet(), Cluster: cluster})
		t.home.held.Store(&held{rpc.NewTarget(cluster, seq.Incarnation{}), ""})
		t.mapping = a.mapping
	}
	changed := t.adoptMap(a.sets)
	if t.extend(a.mapping) {
		changed = true
	}
	of := t.home
	if told := t.part(cluster); told != nil {
		of = told
		if of.hold(a.life, s.Addr) {
			changed = true
		}
	}
	s.of.Store(of)
	s.tells(a.life)
	s.vouched.Store(of.held.Load())
	s.other.Store(nil)
	newer, err := of.adopt(a.reply.GetRoutes(), t.mapping)
	if changed || newer {
		t.show()
	}
	if err == nil && a.reply.GetRoutes() == nil && of.version.Load() == 0 && a.sets.Version == 0 {
		err = fmt.Errorf("%w: it has no table yet", seq.ErrNoRoute)
	}
	return err
}

// adoptMap takes over a newer map. Needs t.mu.
func (t *Table) adoptMap(m sets.Map) bool {
	if m.Version <= t.sets.Version {
		return false
	}
	old := t.parts
	if slices.ContainsFunc(old, func(s *Set) bool { return !listed(m, s.ID()) }) {
		t.cfg.Logger.Warn("map of Sets refused, it lacks a Set that is known", "version", m.Version)
		return false
	}
	t.sets = m
	t.search.found()
	if t.cfg.Indirect {
		return true // a router belongs to no Set
	}
	t.parts = make([]*Set, len(m.Sets))
	for i, one := range m.Sets {
		at := slices.IndexFunc(old, func(s *Set) bool { return s.ID() == one.Cluster })
		if at < 0 {
			t.parts[i] = newSet(t, one)
			t.parts[i].begin()
		} else {
			t.parts[i] = old[at]
			t.parts[i].is.Store(&one)
			t.parts[i].hold(one.Incarnation, byMap)
		}
		t.parts[i].connect(one.Addrs)
	}
	t.cfg.Logger.Debug("map of Sets adopted", "version", m.Version, "sets", len(m.Sets))
	return true
}

// Heard notes what a reply says of the table of the server's Set: a newer table, or that one
// exists.
func (s *Server) Heard(version uint64, routes *pb.RouteTable) {
	of := s.Set()
	if of == nil || version <= of.version.Load() {
		return
	}
	if routes == nil {
		of.Poke()
		return
	}
	t := s.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.vouched.Load() != of.held.Load() {
		of.Poke() // the server may be of an older era
		return
	}
	newer, err := of.adopt(routes, t.mapping)
	if err != nil {
		s.t.cfg.Logger.Warn("route table in a reply refused", "version", routes.GetVersion(), "error", err)
	}
	if newer {
		t.show()
	}
}

// show makes a view of what is known, if that is enough for calls, and closes the connections
// that nothing names any more: calls on them are tried again by it. Needs t.mu.
func (t *Table) show() {
	enough, used := t.gen > 0 || t.cfg.Indirect && t.sets.Version > 0, map[*Server]bool{}
	var parts []Part
	for _, s := range t.parts {
		parts = append(parts, Part{s, s.held.Load().Life(), s.routes, s.nodes})
		enough = enough || s.routes != nil
		for _, one := range slices.Concat(s.starts, s.nodes) {
			used[one] = true
		}
	}
	if !enough {
		return
	}
	t.gen++
	if t.view.Swap(NewView(t.gen, t.mapping, t.sets, parts)) == nil {
		close(t.ready)
	}
	t.servers.keep(used)
}

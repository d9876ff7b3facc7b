package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// refreshPause is the least time between two fetches of a Set's table: a cluster in
// trouble is not asked by every caller.
const refreshPause = 50 * time.Millisecond

// enoughAnswers is how many servers without a newer table end a search for one.
const enoughAnswers = 3

// standbys is how many a section has in the table.
const standbys = 2

// errNotNewer is the answer of a server that has no newer table.
var errNotNewer = errors.New("no newer table")

// table keeps the newest map of Sets, and the newest route table of each.
type table struct {
	c       *Client
	home    *set                  // of the first server that answers
	view    atomic.Pointer[view]  // nil until the first route table
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
	parts   []*set // by the index of the map; home alone as long as there is none
}

func (t *table) open(c *Client) {
	t.c, t.ready, t.foreign = c, make(chan struct{}), make(chan struct{})
	t.home = newSet(c, sets.Set{})
	t.parts = []*set{t.home}
}

// glanceEvery is how old the map of Sets gets at a Client whose calls bring none, as those for
// global IDs: it would never hear of Sets that were added, nor ask them when its own is dead.
const glanceEvery = 30 * time.Second

// glance asks for a newer map in the background if none was asked for in a while.
func (t *table) glance(now time.Time) {
	last := t.looked.Load()
	if now.UnixNano()-last > int64(glanceEvery) && t.looked.CompareAndSwap(last, now.UnixNano()) {
		t.first().poke()
	}
}

// Routes is the route table that the Client goes by; nil before the first. Of several Sets it
// is the root's, and nil as long as that is not known. It must not be changed.
func (c *Client) Routes() *seq.RouteTable {
	if v := c.table.view.Load(); v != nil {
		return v.root().routes
	}
	return nil
}

// Mapping is the cluster's mapping, of several Sets that of all; ok is false before the first
// route table.
func (c *Client) Mapping() (m seq.Mapping, ok bool) {
	if v := c.table.view.Load(); v != nil {
		return v.mapping, true
	}
	return seq.Mapping{}, false
}

// ClusterID is the cluster's id, of several Sets the root's; "" before the first route table if
// Config had none.
func (c *Client) ClusterID() string {
	switch v := c.table.view.Load(); {
	case v == nil:
		return c.cfg.ClusterID
	case len(v.sets.Sets) > 0:
		return v.sets.Sets[0].Cluster
	default:
		return v.root().of.id()
	}
}

// Refresh asks for a newer route table of the root Set, and a newer map, in the background, for
// callers that heard of one. It never blocks.
func (c *Client) Refresh() { c.table.first().poke() }

// first is the root Set; home as long as it is not known.
func (t *table) first() *set {
	if v := t.view.Load(); v != nil {
		return v.root().of
	}
	return t.home
}

// await waits for the first table, until lost is closed or ctx or Config.Timeout ends.
func (t *table) await(ctx context.Context, lost <-chan struct{}) error {
	select {
	case <-t.ready:
		return nil
	default:
	}
	ctx, cancel := t.c.cfg.within(ctx)
	defer cancel()
	select {
	case <-t.ready:
		return nil
	case <-t.c.ctx.Done():
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("wait for the first route table: %w: %w", ctx.Err(), t.why())
	case <-lost:
		return fmt.Errorf("wait for the first route table: %w", cmp.Or(t.home.outage.reason(), t.why()))
	case <-t.foreign:
		return fmt.Errorf("wait for the first route table: %w", t.why())
	}
}

// why there is no table.
func (t *table) why() error {
	if last := t.fault.Load(); last != nil {
		return *last
	}
	return seq.ErrNoRoute
}

// begin is what a call begins with: its deadline, and the view.
func (t *table) begin(ctx context.Context) (context.Context, context.CancelFunc, *view, error) {
	ctx, cancel := t.c.cfg.within(ctx)
	v, err := (*view)(nil), ctx.Err()
	if err == nil {
		v, err = t.current(ctx)
	}
	return ctx, cancel, v, err
}

// current is the newest view; it waits for the first.
func (t *table) current(ctx context.Context) (*view, error) {
	if v := t.view.Load(); v != nil {
		return v, nil
	}
	if err := t.await(ctx, t.home.outage.known()); err != nil {
		return nil, err
	}
	return t.view.Load(), nil
}

// fetch asks one server for a table of its Set, and a map, newer than those at hand. A server of a
// newer era is asked for its table whatever is at hand, because a new era counts tables from the
// beginning.
func (t *table) fetch(ctx context.Context, s *server) error {
	a, err := t.ask(ctx, s, s.Version())
	if err == nil && a.reply.GetRoutes() == nil && s.target().Life().Newer(a.life) {
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
func (t *table) accepts(a *answer) error {
	cluster := a.reply.GetClusterId()
	want := t.c.cfg.ClusterID
	if id := t.home.id(); id != "" {
		want = id
	}
	if want != "" && cluster != want && !listed(t.sets, cluster) && !(listed(a.sets, cluster) && listed(a.sets, want)) {
		return fmt.Errorf("%w: %q, expected %q", seq.ErrForeignCluster, cluster, want)
	}
	if of := t.part(cluster); of != nil {
		return of.refuses(a.from, a.life)
	}
	return nil
}

// part is the Set of a cluster; nil if it is not known. Needs t.mu.
func (t *table) part(cluster string) *set {
	for _, one := range t.parts {
		if one.id() == cluster {
			return one
		}
	}
	return nil
}

func listed(m sets.Map, cluster string) bool {
	return slices.ContainsFunc(m.Sets, func(s sets.Set) bool { return s.Cluster == cluster })
}

// adopt takes over what is new in an answer of a server. Needs t.mu.
func (t *table) adopt(a *answer) error {
	s, cluster := a.from, a.reply.GetClusterId()
	if t.home.id() == "" {
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
		if of.hold(a.life, s.addr) {
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
func (t *table) adoptMap(m sets.Map) bool {
	if m.Version <= t.sets.Version {
		return false
	}
	old := t.parts
	if slices.ContainsFunc(old, func(s *set) bool { return !listed(m, s.id()) }) {
		t.c.cfg.Logger.Warn("map of Sets refused, it lacks a Set that is known", "version", m.Version)
		return false
	}
	t.sets = m
	t.search.found()
	if t.c.cfg.Indirect {
		return true // routers are of no Set
	}
	t.parts = make([]*set, len(m.Sets))
	for i, one := range m.Sets {
		at := slices.IndexFunc(old, func(s *set) bool { return s.id() == one.Cluster })
		if at < 0 {
			t.parts[i] = newSet(t.c, one)
			t.parts[i].begin()
		} else {
			t.parts[i] = old[at]
			t.parts[i].is.Store(&one)
			t.parts[i].hold(one.Incarnation, byMap)
		}
		t.parts[i].connect(one.Addrs)
	}
	t.c.cfg.Logger.Debug("map of Sets adopted", "version", m.Version, "sets", len(m.Sets))
	return true
}

// Heard notes what a reply says of the table of the server's Set: a newer table, or that one
// exists.
func (s *server) Heard(version uint64, routes *pb.RouteTable) {
	of := s.set()
	if of == nil || version <= of.version.Load() {
		return
	}
	if routes == nil {
		of.poke()
		return
	}
	t := &s.c.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.vouched.Load() != of.held.Load() {
		of.poke() // the server may be of an older era
		return
	}
	newer, err := of.adopt(routes, t.mapping)
	if err != nil {
		s.c.cfg.Logger.Warn("route table in a reply refused", "version", routes.GetVersion(), "error", err)
	}
	if newer {
		t.show()
	}
}

// show makes a view of what is known, if that is enough for calls, and closes the connections
// that nothing names any more: calls on them are tried again by it. Needs t.mu.
func (t *table) show() {
	v := &view{gen: t.gen + 1, mapping: t.mapping, sets: t.sets}
	enough, used := t.gen > 0 || t.c.cfg.Indirect && t.sets.Version > 0, map[*server]bool{}
	for _, s := range t.parts {
		v.parts = append(v.parts, part{s, s.held.Load().Life(), s.routes, s.nodes})
		enough = enough || s.routes != nil
		for _, one := range slices.Concat(s.starts, s.nodes) {
			used[one] = true
		}
	}
	if !enough {
		return
	}
	t.gen++
	v.merge()
	if t.view.Swap(v) == nil {
		close(t.ready)
	}
	t.c.servers.keep(used)
}

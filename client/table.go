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
	"github.com/seqsvr/seqsvr/internal/wake"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// refreshPause is the least time between two fetches of the table: a cluster in
// trouble is not asked by every caller.
const refreshPause = 50 * time.Millisecond

// enoughAnswers is how many servers without a newer table end a search for one.
const enoughAnswers = 3

// standbys is how many a section has in the table.
const standbys = 2

// errNotNewer is the answer of a server that has no newer table.
var errNotNewer = errors.New("no newer table")

// view is one route table with the connections to its nodes. Immutable.
type view struct {
	cluster string
	mapping seq.Mapping
	routes  *seq.RouteTable
	nodes   []*server // one a node of routes; nil when it has no usable address
}

// version is the table's; 0 without a view, which asks servers to send no table.
func (v *view) version() uint64 {
	if v == nil {
		return 0
	}
	return v.routes.Version
}

// owner is the server to ask first for a section; nil if there is none.
func (v *view) owner(id seq.SectionID) *server {
	if int(id) < len(v.routes.Sections) {
		if n := v.routes.Sections[id].Owner; n >= 0 && int(n) < len(v.nodes) {
			return v.nodes[n]
		}
	}
	return nil
}

// named is the index of a node by its name, -1 if it has no connection.
func (v *view) named(node string) int {
	if node == "" {
		return -1
	}
	return slices.IndexFunc(v.routes.Nodes, func(n seq.Node) bool { return n.Name == node })
}

// candidates are the owner and the standbys of a section; nil where there is none.
func (v *view) candidates(id seq.SectionID) (out [1 + standbys]*server) {
	if int(id) >= len(v.routes.Sections) {
		return out
	}
	for i, n := range v.routes.Sections[id].Candidates() {
		if n >= 0 && int(n) < len(v.nodes) {
			out[i] = v.nodes[n]
		}
	}
	return out
}

// table keeps the newest route table.
type table struct {
	c       *Client
	view    atomic.Pointer[view]  // nil until the first table
	ready   chan struct{}         // closed with the first table
	foreign chan struct{}         // closed when all Addrs belong to another cluster, or let this program in nowhere
	stale   chan struct{}         // cap 1: asks for a newer table
	adoptMu sync.Mutex            // held while a new view is made, so that versions only rise
	fault   atomic.Pointer[error] // why the last fetch failed
	spaces  spaces
}

func (t *table) open(c *Client) {
	t.c, t.ready, t.foreign, t.stale = c, make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
}

// Routes is the route table that the Client goes by; nil before the first. It must
// not be changed.
func (c *Client) Routes() *seq.RouteTable {
	if v := c.table.view.Load(); v != nil {
		return v.routes
	}
	return nil
}

// Mapping is the cluster's mapping; ok is false before the first route table.
func (c *Client) Mapping() (m seq.Mapping, ok bool) {
	if v := c.table.view.Load(); v != nil {
		return v.mapping, true
	}
	return seq.Mapping{}, false
}

// ClusterID is the cluster's id; "" before the first route table if Config had none.
func (c *Client) ClusterID() string {
	if v := c.table.view.Load(); v != nil {
		return v.cluster
	}
	return c.cfg.ClusterID
}

// Refresh asks for a newer route table in the background, for callers that heard of
// one. It never blocks.
func (c *Client) Refresh() {
	select {
	case c.table.stale <- struct{}{}:
	default:
	}
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
		return fmt.Errorf("wait for the first route table: %w", cmp.Or(t.c.outage.reason(), t.why()))
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
	if err := t.await(ctx, t.c.outage.known()); err != nil {
		return nil, err
	}
	return t.view.Load(), nil
}

// heard notes what a reply says of the table: a newer table, or that one exists.
func (t *table) heard(version uint64, routes *pb.RouteTable) {
	v := t.view.Load()
	if v == nil || version <= v.version() {
		return
	}
	if routes == nil {
		t.c.Refresh()
		return
	}
	if err := t.adopt(v.cluster, v.mapping, routes); err != nil {
		t.c.cfg.Logger.Warn("route table in a reply refused", "version", routes.GetVersion(), "error", err)
	}
}

// adopt makes the table current if it is newer, then closes the connections that
// neither it nor the configuration names: calls on them are tried again by it.
func (t *table) adopt(cluster string, m seq.Mapping, table *pb.RouteTable) error {
	t.adoptMu.Lock()
	defer t.adoptMu.Unlock()
	old := t.view.Load()
	if old != nil && table.GetVersion() <= old.version() {
		return nil
	}
	if old != nil {
		m = old.mapping // what is added to it, extend takes over
	}
	routes, err := rpc.RoutesFromProto(table, m)
	if err != nil {
		return err
	}
	v := &view{cluster: cluster, mapping: m, routes: routes, nodes: make([]*server, len(routes.Nodes))}
	used := map[*server]bool{}
	for i, n := range routes.Nodes {
		if t.c.cfg.Indirect || n.Addr == "" {
			continue
		}
		s, err := t.c.servers.at(n.Addr)
		if errors.Is(err, ErrClosed) {
			return err
		}
		if err != nil {
			t.c.cfg.Logger.Warn("node left out", "node", n.Name, "addr", n.Addr, "error", err)
			continue
		}
		v.nodes[i], used[s] = s, true
	}
	t.view.Store(v)
	if old == nil {
		close(t.ready)
	}
	t.c.cfg.Logger.Debug("route table adopted", "version", routes.Version, "nodes", len(routes.Nodes))
	t.c.servers.keep(used)
	return nil
}

// refreshLoop fetches the first table, and newer ones when asked to.
func (t *table) refreshLoop() {
	var once sync.Once
	for {
		if t.refresh() && t.view.Load() == nil {
			once.Do(func() { close(t.foreign) })
		}
		if !wake.Sleep(t.c.ctx, refreshPause) {
			return
		}
		if t.view.Load() == nil {
			continue
		}
		select {
		case <-t.c.ctx.Done():
			return
		case <-t.stale:
		}
	}
}

// refresh asks the servers for a newer table, those in doubt last, until one has it, enough
// have none, or all were asked. It says whether all that were asked are of another cluster, or do not let
// this program in.
func (t *table) refresh() (foreign bool) {
	foreign = true
	old, answers := t.view.Load(), 0
	k := call{c: t.c, rules: &forTable}
	k.ask = func(ctx context.Context, a *attempt) ([]fault, error) {
		err := t.fetch(ctx, a.server, old.version())
		foreign = foreign && anyOf(err, []error{seq.ErrForeignCluster, seq.ErrUnauthenticated, seq.ErrForbidden})
		if err != nil {
			t.fault.Store(&err)
			return nil, err
		}
		if answers++; t.view.Load() == old && answers < enoughAnswers {
			return nil, errNotNewer
		}
		return nil, nil
	}
	_ = k.one(t.c.ctx) // what it found is in t
	return foreign
}

// fetch asks one server for a table newer than version.
func (t *table) fetch(ctx context.Context, s *server, version uint64) error {
	var reply *pb.RoutesReply
	err := s.try(ctx, 4*t.c.cfg.AttemptTimeout, func(ctx context.Context) (err error) {
		reply, err = s.rpc.Routes(ctx, &pb.RoutesRequest{RouteVersion: version})
		return err
	})
	if err != nil {
		return fmt.Errorf("fetch routes: %w", err)
	}
	want := t.c.ClusterID()
	if want != "" && reply.GetClusterId() != want {
		t.c.cfg.Logger.Error("server of another cluster", "addr", s.addr, "cluster", reply.GetClusterId(), "want", want)
		return fmt.Errorf("fetch routes from %s: %w: %q, expected %q", s.addr, seq.ErrForeignCluster, reply.GetClusterId(), want)
	}
	if reply.GetRoutes() == nil && version == 0 {
		return fmt.Errorf("fetch routes from %s: %w: it has no table yet", s.addr, seq.ErrNoRoute)
	}
	m, err := rpc.MappingFromProto(reply.GetMapping())
	if err != nil {
		return fmt.Errorf("fetch routes from %s: %w", s.addr, err)
	}
	t.extend(m)
	if reply.GetRoutes() == nil {
		return nil
	}
	if err := t.adopt(reply.GetClusterId(), m, reply.GetRoutes()); err != nil {
		return fmt.Errorf("fetch routes from %s: %w", s.addr, err)
	}
	return nil
}

package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// refreshPause is the least time between two fetches of the table: a cluster in
// trouble is not asked by every caller.
const refreshPause = 50 * time.Millisecond

// enoughAnswers is how many peers without a newer table end a fetch.
const enoughAnswers = 3

// view is one route table with the connections to its nodes. Immutable.
type view struct {
	cluster string
	mapping seq.Mapping
	routes  *seq.RouteTable
	nodes   []*peer // one a node of routes; nil when it has no usable address
}

// version is the table's; 0 without a view, which asks peers to send no table.
func (v *view) version() uint64 {
	if v == nil {
		return 0
	}
	return v.routes.Version
}

// owner is the peer to ask first for a section; nil if there is none.
func (v *view) owner(id seq.SectionID) *peer {
	if int(id) < len(v.routes.Sections) {
		if n := v.routes.Sections[id].Owner; n >= 0 && int(n) < len(v.nodes) {
			return v.nodes[n]
		}
	}
	return nil
}

// candidates are the peers to ask for a section, in order; nil where there is none.
func (v *view) candidates(id seq.SectionID) (out [3]*peer) {
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

// Routes is the route table that the Client goes by; nil before the first. It must
// not be changed.
func (c *Client) Routes() *seq.RouteTable {
	if v := c.view.Load(); v != nil {
		return v.routes
	}
	return nil
}

// Mapping is the cluster's mapping; ok is false before the first route table.
func (c *Client) Mapping() (m seq.Mapping, ok bool) {
	if v := c.view.Load(); v != nil {
		return v.mapping, true
	}
	return seq.Mapping{}, false
}

// ClusterID is the cluster's id; "" before the first route table if Config had none.
func (c *Client) ClusterID() string {
	if v := c.view.Load(); v != nil {
		return v.cluster
	}
	return c.cfg.ClusterID
}

// Refresh asks for a newer route table in the background, for callers that heard of
// one. It never blocks.
func (c *Client) Refresh() {
	select {
	case c.stale <- struct{}{}:
	default:
	}
}

// current is the view, waited for if there is none yet.
func (c *Client) current(ctx context.Context) (*view, error) {
	if v := c.view.Load(); v != nil {
		return v, nil
	}
	if err := c.await(ctx, c.outage.known()); err != nil {
		return nil, err
	}
	return c.view.Load(), nil
}

// heard takes what a reply says of the table: the newer one, or that there is one.
func (c *Client) heard(version uint64, routes *pb.RouteTable) {
	v := c.view.Load()
	if v == nil || version <= v.version() {
		return
	}
	if routes == nil {
		c.Refresh()
		return
	}
	if err := c.adopt(v.cluster, v.mapping, routes); err != nil {
		c.cfg.Logger.Warn("route table in a reply refused", "version", routes.GetVersion(), "error", err)
	}
}

// adopt makes the table current if it is newer, then closes the connections that
// neither it nor the configuration names: calls on them are tried again by it.
func (c *Client) adopt(cluster string, m seq.Mapping, table *pb.RouteTable) error {
	c.adoptMu.Lock()
	defer c.adoptMu.Unlock()
	old := c.view.Load()
	if old != nil && table.GetVersion() <= old.version() {
		return nil
	}
	routes, err := rpc.RoutesFromProto(table, m)
	if err != nil {
		return err
	}
	v := &view{cluster: cluster, mapping: m, routes: routes, nodes: make([]*peer, len(routes.Nodes))}
	used := map[*peer]bool{}
	for i, n := range routes.Nodes {
		if c.cfg.Indirect || n.Addr == "" {
			continue
		}
		p, err := c.peerAt(n.Addr)
		if errors.Is(err, ErrClosed) {
			return err
		}
		if err != nil {
			c.cfg.Logger.Warn("node left out", "node", n.Name, "addr", n.Addr, "error", err)
			continue
		}
		v.nodes[i], used[p] = p, true
	}
	c.view.Store(v)
	if old == nil {
		close(c.ready)
	}
	c.cfg.Logger.Debug("route table adopted", "version", routes.Version, "nodes", len(routes.Nodes))
	c.dropUnused(used)
	return nil
}

func (c *Client) dropUnused(used map[*peer]bool) {
	var gone []*peer
	c.peersMu.Lock()
	for addr, p := range c.peers {
		if !p.seed && !used[p] {
			delete(c.peers, addr)
			gone = append(gone, p)
		}
	}
	c.peersMu.Unlock()
	for _, p := range gone {
		p.close(&lostError{p.addr, errPeerGone})
	}
}

// refreshLoop fetches the first table, and newer ones when asked to.
func (c *Client) refreshLoop() {
	var once sync.Once
	for {
		if c.refreshOnce() && c.view.Load() == nil {
			once.Do(func() { close(c.foreign) })
		}
		if !c.rest(refreshPause) {
			return
		}
		if c.view.Load() == nil {
			continue
		}
		select {
		case <-c.ctx.Done():
			return
		case <-c.stale:
		}
	}
}

// rest waits; false when the Client was closed meanwhile.
func (c *Client) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// refreshOnce asks peers, the likely ones first, until one gives a newer table, enough
// have none, or all have been asked. It tells whether all that were asked are of another cluster.
func (c *Client) refreshOnce() (foreign bool) {
	foreign = true
	answers := 0
	v := c.view.Load()
	turn := int(c.seedTurn.Add(1))
	asked := map[*peer]bool{}
	var order []*peer
	for i := range c.seeds {
		order = append(order, c.seeds[(turn+i)%len(c.seeds)])
	}
	if v != nil {
		order = append(order, v.nodes...)
	}
	// Peers known to be away come last: each may cost an attempt's whole time.
	for _, away := range []bool{false, true} {
		for _, p := range order {
			if p == nil || asked[p] || p.suspect.Load() != away {
				continue
			}
			asked[p] = true
			err := c.fetch(p, v.version())
			foreign = foreign && errors.Is(err, seq.ErrForeignCluster)
			if err != nil {
				c.lastFault.Store(&err)
				if errors.Is(err, seq.ErrNoQuorum) {
					c.outage.hear(err)
				}
				continue
			}
			if answers++; c.view.Load() != v || v != nil && answers == enoughAnswers {
				return false
			}
		}
		if c.ctx.Err() != nil {
			return false
		}
	}
	return foreign
}

// fetch asks one peer for a table newer than version.
func (c *Client) fetch(p *peer, version uint64) error {
	ctx, cancel := context.WithTimeout(c.ctx, 4*c.cfg.AttemptTimeout)
	defer cancel()
	reply, err := p.rpc.Routes(ctx, &pb.RoutesRequest{RouteVersion: version})
	if err != nil {
		return fmt.Errorf("fetch routes: %w", callError(ctx, p.addr, err))
	}
	want := c.ClusterID()
	if want != "" && reply.GetClusterId() != want {
		c.cfg.Logger.Error("peer of another cluster", "addr", p.addr, "cluster", reply.GetClusterId(), "want", want)
		return fmt.Errorf("fetch routes from %s: %w: %q, expected %q", p.addr, seq.ErrForeignCluster, reply.GetClusterId(), want)
	}
	if reply.GetRoutes() == nil {
		if version == 0 {
			return fmt.Errorf("fetch routes from %s: %w: it has no table yet", p.addr, seq.ErrNoRoute)
		}
		return nil
	}
	m, err := rpc.MappingFromProto(reply.GetMapping())
	if err != nil {
		return fmt.Errorf("fetch routes from %s: %w", p.addr, err)
	}
	if v := c.view.Load(); v != nil {
		m = v.mapping // fixed for the life of a cluster
	}
	if err := c.adopt(reply.GetClusterId(), m, reply.GetRoutes()); err != nil {
		return fmt.Errorf("fetch routes from %s: %w", p.addr, err)
	}
	return nil
}

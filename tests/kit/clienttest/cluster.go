// Package clienttest is a cluster for tests of what stands on the SDK: a few nodes on 127.0.0.1 that
// can die, hang, redirect and refuse.
//
// One real AllocSvr over stores in memory answers for all nodes. A node refuses, delays or drops a call
// before the AllocSvr sees it, or changes the answer, as the test says.
package clienttest

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// ClusterID of every Cluster that is alone.
const ClusterID = "test-cluster"

// Cluster is a set of nodes that callers take for AllocSvr.
type Cluster struct {
	Nodes   []*Node
	Mapping seq.Mapping
	ID      string // the cluster's

	back *backend

	mu        sync.Mutex // guards all below
	routes    *seq.RouteTable
	effective []int // the node that serves a section, whatever the table says
	unordered bool
	noHints   bool
	fault     error
	agents    map[string]int // snowflake IDs by agent
	heard     []int          // nodes that know of the added spaces; if nil, all
	atOnce    int            // largest count of a Generate; zero means no bound

	delegations int // windows lent
	set         setState
	noLoans     error // why no window is lent; nil if windows are lent
	returned    []*pb.SnowflakeGiveBackRequest
}

// Node is a door to the AllocSvr of the cluster. Its address stays bound while it is dead.
type Node struct {
	// Messages counts StreamRequests that arrived, and Keys the keys in them; Calls
	// the unary ones.
	Messages, Keys, Calls atomic.Int64
	Watches               atomic.Int64 // that are open
	Together              atomic.Int64 // messages with Opens and Dones of many callers
	// Generates and Takes count those calls for snowflake IDs and segments.
	Generates, Takes atomic.Int64
	// Generated counts the snowflake IDs that the node handed out.
	Generated atomic.Int64
	// Asked counts questions for the routes.
	Asked atomic.Int64

	cluster *Cluster
	index   int
	lis     net.Listener

	mu   sync.Mutex // guards all below
	srv  *gate.Server
	door *doorway
	hang chan struct{} // open while the node hangs, else nil
	bare bool          // it serves sequences only
	// older is set for a node of a build that takes Open and Done by unary calls only.
	older bool

	life    seq.Incarnation // that it tells; not known: none
	refusal error           // in place of numbers; may be nil
	lose    int             // answers to takes that get lost from now on
	health  *health.Server  // of srv
}

// Start runs n nodes until the test ends, with one AllocSvr behind them. The sections of the mapping
// are dealt out in turn; the next nodes are the standbys.
func Start(t testing.TB, n int, spaces ...seq.Space) *Cluster {
	t.Helper()
	m, err := seq.NewMapping(spaces...)
	if err != nil {
		t.Fatal(err)
	}
	return start(t, ClusterID, n, startBackend(t, ClusterID, m), m)
}

func start(t testing.TB, id string, n int, back *backend, m seq.Mapping) *Cluster {
	t.Helper()
	c := &Cluster{back: back, ID: id, Mapping: m, effective: make([]int, m.Sections()), agents: map[string]int{}}
	table := &seq.RouteTable{Version: 1, Sections: make([]seq.Placement, m.Sections())}
	for i := range n {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		node := &Node{cluster: c, index: i, lis: lis}
		c.Nodes = append(c.Nodes, node)
		table.Nodes = append(table.Nodes, seq.Node{Name: nameOf(i), Addr: node.Addr(), Session: seq.Session(i + 1), Weight: 100})
	}
	for i := range table.Sections {
		p := seq.Placement{Owner: int16(i % n), Standby: seq.NoNode, Standby2: seq.NoNode}
		if n > 1 {
			p.Standby = int16((i + 1) % n)
		}
		if n > 2 {
			p.Standby2 = int16((i + 2) % n)
		}
		table.Sections[i], c.effective[i] = p, i%n
	}
	c.routes = table
	for _, node := range c.Nodes {
		node.Restart()
		go node.accept()
		t.Cleanup(func() {
			node.Resume()
			_ = node.lis.Close()
			node.Kill()
		})
	}
	return c
}

// Addrs are the addresses of all nodes.
func (c *Cluster) Addrs() []string {
	out := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		out[i] = n.Addr()
	}
	return out
}

// Routes is the current table.
func (c *Cluster) Routes() *seq.RouteTable {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.routes
}

// TakeOver makes node serve all that from served. The table stays as it is.
func (c *Cluster) TakeOver(from, node int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, n := range c.effective {
		if n == from {
			c.effective[i] = node
		}
	}
}

// Publish writes a new table in which each section's owner is the node that serves it;
// standbys stay.
func (c *Cluster) Publish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.routes.Clone()
	next.Version++
	for i, n := range c.effective {
		next.Sections[i].Owner = int16(n)
	}
	c.routes = next
}

// AddSpace adds a space, dealt out like the others, to the cluster and to its next table. Nodes
// that are not among heard do not know it yet; the others serve it.
func (c *Cluster) AddSpace(s seq.Space, heard ...int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, _, err := c.Mapping.Add(s)
	if err != nil {
		return err
	}
	if err := c.back.extend(m); err != nil {
		return err
	}
	c.Mapping = m
	next := c.routes.Clone()
	next.Version++
	next.Cover(m.Sections())
	for i := len(c.effective); i < m.Sections(); i++ {
		next.Sections[i].Owner = int16(i % len(c.Nodes))
		c.effective = append(c.effective, i%len(c.Nodes))
	}
	c.routes, c.heard = next, heard
	return nil
}

// Tell has all nodes know every space.
func (c *Cluster) Tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = nil
}

// mappingAt is the mapping that a node knows. Needs c.mu.
func (c *Cluster) mappingAt(node int) seq.Mapping {
	m := c.Mapping
	if c.heard != nil && !slices.Contains(c.heard, node) {
		m.Spaces = slices.DeleteFunc(slices.Clone(m.Spaces), func(s seq.Space) bool { return s.Added })
	}
	return m
}

// Owner is the index of the node that serves a section.
func (c *Cluster) Owner(id seq.SectionID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.effective[id]
}

// Behave sets what all answers carry: the unordered flag, no address with NOT_OWNER,
// and an error in place of numbers.
func (c *Cluster) Behave(unordered, noHints bool, fault error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unordered, c.noHints, c.fault = unordered, noHints, fault
}

// AtOnce bounds the count of one Generate, as a policy to refuse does. Zero means no bound.
func (c *Cluster) AtOnce(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.atOnce = n
}

// IDsOf counts the snowflake IDs that an agent got.
func (c *Cluster) IDsOf(agent string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.agents[agent]
}

// Bare restarts the node as one that serves sequences only.
func (n *Node) Bare() {
	n.mu.Lock()
	n.bare = true
	n.mu.Unlock()
	n.Restart()
}

// Addr is the node's address.
func (n *Node) Addr() string { return n.lis.Addr().String() }

// Kill cuts all connections; new ones are closed at once until Restart.
func (n *Node) Kill() {
	n.mu.Lock()
	srv := n.srv
	n.srv = nil
	n.mu.Unlock()
	if srv != nil {
		srv.Stop()
	}
}

// Restart makes a dead node answer again; a living one loses its connections.
func (n *Node) Restart() {
	n.Kill()
	cfg := gate.ServerConfig{ClusterID: func() string { return n.cluster.ID }, Incarnation: n.incarnation}
	srv := gate.NewServer(cfg, grpc.WaitForHandlers(true), grpc.ChainUnaryInterceptor(n.unary), grpc.ChainStreamInterceptor(n.stream))
	n.mu.Lock()
	for name, s := range n.cluster.back.services {
		if !n.bare || name == pb.Sequence_ServiceDesc.ServiceName {
			srv.RegisterService(s.desc, s.impl)
		}
	}
	n.mu.Unlock()
	states := gate.RegisterHealth(srv)
	door := &doorway{addr: n.lis.Addr(), conns: make(chan net.Conn), done: make(chan struct{})}
	n.mu.Lock()
	n.srv, n.door, n.health = srv, door, states
	n.showQuorum()
	n.mu.Unlock()
	go func() { _ = srv.Serve(door) }()
}

// Older makes the node one of a build that takes Open and Done by unary calls only, or no such one.
func (n *Node) Older(older bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.older = older
}

// Refuse makes the node answer with the error in place of numbers, nil as before. A
// seq.ErrNoQuorum shows in what it says of its quorum.
func (n *Node) Refuse(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refusal = err
	n.showQuorum()
}

// Lose makes the node keep the answers to the next takes to itself, so many of them, whose
// numbers are taken.
func (n *Node) Lose(answers int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose = answers
}

// lost says whether an answer gets lost.
func (n *Node) lost() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose--
	return n.lose >= 0
}

// showQuorum needs n.mu.
func (n *Node) showQuorum() {
	if n.health != nil {
		n.health.SetServingStatus(rpc.QuorumHealth, gate.Serving(!errors.Is(n.refusal, seq.ErrNoQuorum)))
	}
}

func (n *Node) refused() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.refusal
}

// Hang makes the node take requests and answer nothing until Resume.
func (n *Node) Hang() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hang == nil {
		n.hang = make(chan struct{})
	}
}

// Resume ends Hang.
func (n *Node) Resume() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hang != nil {
		close(n.hang)
		n.hang = nil
	}
}

// stall waits while the node hangs.
func (n *Node) stall(ctx context.Context) error {
	n.mu.Lock()
	hang := n.hang
	n.mu.Unlock()
	if hang == nil {
		return nil
	}
	select {
	case <-hang:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// accept passes connections to the living server and closes them while there is none.
func (n *Node) accept() {
	for {
		conn, err := n.lis.Accept()
		if err != nil {
			return
		}
		n.mu.Lock()
		srv, door := n.srv, n.door
		n.mu.Unlock()
		if srv == nil || !door.offer(conn) {
			_ = conn.Close()
		}
	}
}

// behaviour is what a test asked of all nodes.
type behaviour struct {
	unordered      bool
	fault, noLoans error
	atOnce         int
}

func (c *Cluster) behaves() behaviour {
	c.mu.Lock()
	defer c.mu.Unlock()
	return behaviour{c.unordered, c.fault, c.noLoans, c.atOnce}
}

// agent counts snowflake IDs that an agent got.
func (c *Cluster) agent(name string, ids int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.agents[name] += ids
}

// lends counts a window that was lent.
func (c *Cluster) lends() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delegations++
}

// returns notes a window that was given back.
func (c *Cluster) returns(r *pb.SnowflakeGiveBackRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.returned = append(c.returned, r)
}

// Delegations counts the windows that were lent.
func (c *Cluster) Delegations() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.delegations
}

// Lend has windows refused with an error, lent again with nil.
func (c *Cluster) Lend(refusal error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noLoans = refusal
}

// Returned are the windows that were given back, to the node that had lent them.
func (c *Cluster) Returned() []*pb.SnowflakeGiveBackRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.returned)
}

// AddTag makes a segment tag.
func (c *Cluster) AddTag(name string) {
	c.back.add(&pb.SegmentTag{Tag: name, MinStep: 1000, MaxStep: 1_000_000, Start: 1})
}

// TagOwner is the index of the node that serves a tag.
func (c *Cluster) TagOwner(name string) int { return c.Owner(c.Mapping.SectionOfName(name)) }

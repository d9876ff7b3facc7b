package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr/api"
	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/allocsvr/globalid"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/audit"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/allocsvr/segment"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/membership"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Wiring connects a Node to the world. The Server uses sockets and the machine's clocks. The simulator of
// tests/sim uses a network and clocks of its own.
type Wiring struct {
	Identity quorum.Identity // of the stores' cluster: Ref, N, R, W, Mapping, MaxLease
	Stores   []quorum.NamedStore
	Addr     string                                  // of this node, for callers and peers
	Secret   seq.Secret                              // of the session
	Dial     func(addr string) (api.PeerConn, error) // to a peer; does not wait for it
	DialSet  func(addr string) (api.PeerConn, error) // to an AllocSvr of another Set, likewise; if nil, Dial
	Clock    clock.Clock
	Wall     func() time.Time
	// Stop is called with the reason if the process must end because the stores refuse it.
	Stop func(error)
	// Stale is called when a store has another member list, or when spaces may have been added. The owner
	// of the node then asks the stores, and calls Reconfigure and Extend. Stale must not block. If nil, the
	// list never changes.
	Stale func()
	// Tell sends a mapping with an added space to W stores. If nil, no space can be added here.
	Tell func(ctx context.Context, m seq.Mapping) error
	// Keys says how string keys are hashed during the session. If nil, seq.HashKey hashes them.
	Keys documents.KeyEntries
	// First is the Set's record and map, read before the start. If zero, the cluster has no other Sets.
	First documents.SetsAtStart
	// Parked is the path of the file of parked counters. If empty, none are parked.
	Parked string
	// Regions are nodes of other regions' clusters, which must make other snowflake IDs.
	Regions []globalid.Region
	// Audit records which snowflake IDs are handed out. If nil, they are not recorded.
	Audit *audit.Log
	// Limits bound the memory that callers can make the node use. If nil, Config has the limits.
	Limits *api.Limits
}

// Node is one AllocSvr without its process. It has no listener and no gossip, and does not look for the
// stores. A new Node owns no section. Safe for concurrent use.
type Node struct {
	cfg     Config
	era     seq.Era
	cluster string
	life    seq.Incarnation // of the stores, as they were found
	parked  string
	look    func() // at the stores, soon
	keys    atomic.Pointer[documents.KeyEntries]
	growing sync.Mutex                                     // held by Extend
	extend  func(ctx context.Context, m seq.Mapping) error // as Wiring.Tell
	// require makes the stores require a protocol of sessions. If nil, the node has no process of its own,
	// and all nodes run the same build.
	require func(ctx context.Context, protocol int) error

	alloc     *Alloc
	leases    *quorum.Leases
	group     *quorum.Group
	limits    *api.Limits
	peers     *api.Peers
	pings     *pings // nil if the node suspects no others
	endpoints []endpoint
	ids       *globalid.Service // one of endpoints
	tags      *segment.Service  // likewise
	refused   *refusals
	stores    atomic.Pointer[map[string]string] // the names of the stores, by address
	measured  []*measured
}

// NewNode wires a node. Errors: seq.ErrBadLease, seq.ErrBadArgument, quorum.ErrBadConfig.
func NewNode(cfg Config, w Wiring) (*Node, error) {
	id := w.Identity
	if cfg.Lease > id.MaxLease && id.MaxLease > 0 {
		return nil, fmt.Errorf("%w: %v, the stores grant at most %v", seq.ErrBadLease, cfg.Lease, id.MaxLease)
	}
	if w.Limits == nil {
		w.Limits = cfg.limits()
	}
	if err := w.Keys.Check(id.Mapping); err != nil {
		return nil, err
	}
	if w.Tell == nil {
		w.Tell = tellNobody
	}
	if w.DialSet == nil {
		w.DialSet = w.Dial
	}
	var leases *quorum.Leases // set before anything is sent
	group, err := quorum.NewGroup(quorum.Config{Ref: id.Ref, N: id.N, R: id.R, W: id.W, OnStale: w.Stale, Secret: w.Secret,
		OnClaim: func(c quorum.Claim) { leases.Witness(c) }}, w.Stores)
	if err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, era: id.Ref.Era, cluster: id.Ref.Cluster, life: id.Incarnation, parked: w.Parked, extend: w.Tell, group: group, limits: w.Limits, peers: api.NewPeers(id.Ref.Cluster, w.Secret.Session(), w.Dial)}
	n.keys.Store(&w.Keys)
	refused := &refusals{stop: w.Stop, clock: w.Clock, needed: id.W, stale: w.Stale}
	n.refused = refused
	n.nameStores(id.Members, w.Stores)
	leases, err = quorum.NewLeases(quorum.LeaseConfig{
		Ref: id.Ref, Session: w.Secret.Session(), Secret: w.Secret, Name: cfg.Name, Addr: w.Addr, Lease: cfg.Lease, N: id.N, W: id.W,
		Clock: w.Clock, Wall: w.Wall, Logger: cfg.Logger, Step: group.Step, OnRefused: refused.add,
		OnLost:     n.lost,
		OnRoutes:   func() { n.alloc.routes.Look() },
		OnSessions: func() { n.alloc.sessionsChanged() },
	}, w.Stores)
	if err != nil {
		return nil, err
	}
	n.leases = leases
	refused.connected, refused.ended = n.leases.Connected, n.leases.Ended
	refused.leaving = func() bool { return n.alloc.owner.Leaving() }
	sections := n.measure("section")
	n.alloc, err = NewAlloc(Parts{
		Name: cfg.Name, Addr: w.Addr, Cluster: id.Ref.Cluster, Secret: w.Secret, Lease: cfg.Lease,
		Replicas: id.N, Needed: id.W, Mapping: id.Mapping, First: w.First, Root: n.rootMap(w.DialSet), Registers: sections, Preempting: preempting{sections}, Documents: group, Leases: keeper{n.leases}, Losses: n.leases.Losses, StoreTime: n.leases.StoreTime, StoreRoom: n.leases.Room, Missing: n.missingStores, Peers: n.peers, Keys: w.Keys.Hashers(),
		UIDMemory: n.limits.UIDMemory, Clock: w.Clock, Wall: w.Wall, Logger: cfg.Logger, Traces: cfg.Traces, ExpectAllocs: cfg.ExpectAllocs, Weight: cfg.Weight, Zone: cfg.Zone,
	})
	if err != nil {
		return nil, err
	}
	if cfg.SuspectAfter > 0 {
		n.pings = newPings(n, w.Clock)
	}
	if n.look = w.Stale; n.look == nil {
		n.look = func() {}
	}
	n.alloc.routes.OnChange(func() {
		if len(n.alloc.routes.Table().Sections) > n.alloc.sections.Len() {
			n.look() // spaces were added
		}
	})
	if err := n.endpointsOf(cfg, w); err != nil {
		return nil, err
	}
	if w.Parked != "" {
		if err := n.alloc.owner.Adopt(w.Parked); err != nil {
			cfg.Logger.Warn("parked counters not used", "error", err)
		}
	}
	return n, nil
}

// Register registers the node's services on a server, except the operators' service.
func (n *Node) Register(srv grpc.ServiceRegistrar) {
	a := n.alloc
	pb.RegisterSequenceServer(srv, &api.Sequence{Cluster: n.ClusterID(), Incarnation: n.life, Zone: n.cfg.Zone, Sections: a.sections, RouteTable: a.routes, Sets: a.sets, Limits: n.limits, Keys: a.keyHashers, Unheard: n.look})
	pb.RegisterPeerServer(srv, &api.Peer{Cluster: n.ClusterID(), Session: a.session, Sections: a.sections.Len, Owner: a.owner,
		Known: n.leases.Sessions, Kick: n.leases.Kick, Reread: n.reread, Hear: n.hears(), Guard: n.cfg.Guard, Logger: n.cfg.Logger})
	pb.RegisterSetsServer(srv, &api.Sets{Cluster: n.ClusterID(), Era: n.era, Incarnation: n.life, Name: a.name, Docs: a.sets, Sections: a.sections, Moves: a.owner.Moves(), Routes: a.routes,
		Keyhash: documents.NewKeys(context.Background(), n.group, a.session, *a.sections.Mapping()), Rehash: n.rehash, IDs: n.ids,
		Require: func(ctx context.Context) error { return n.needs(ctx, "Sets", version.Sets) }})
	for _, e := range n.endpoints {
		e.Register(srv)
	}
}

// rehash makes the node hash string keys in a new way. It returns seq.ErrConflict if the node owns a
// section, whose keys are counted in the old way.
func (n *Node) rehash(keys documents.KeyEntries) error {
	n.growing.Lock()
	defer n.growing.Unlock()
	if maps.Equal(*n.keys.Load(), keys) {
		return nil
	}
	if owned := n.alloc.sections.Owned(); len(owned) > 0 {
		return fmt.Errorf("%w: node %s owns %d sections, the string keys of which it hashes otherwise", seq.ErrConflict, n.cfg.Name, len(owned))
	}
	n.keys.Store(&keys)
	hashers := keys.Hashers()
	n.alloc.keys.Store(&hashers)
	return nil
}

// rootMap reads the map of Sets at nodes of the root Set.
func (n *Node) rootMap(dial func(string) (api.PeerConn, error)) func(context.Context, string, uint64) (sets.Map, error) {
	return func(ctx context.Context, addr string, newerThan uint64) (sets.Map, error) {
		var m sets.Map
		err := atRoot(ctx, []string{addr}, dial, func(ctx context.Context, root pb.SetsClient) error {
			reply, err := root.Map(ctx, &pb.SetMapRequest{NewerThan: newerThan})
			if err == nil {
				m, err = rpc.SetMapFromProto(reply.GetSets())
				m.Restored = reply.GetRestored()
			}
			return err
		})
		return m, err
	}
}

// atRoot calls the nodes of the root Set in turn, until one succeeds or fails for a reason that the others
// share.
func atRoot(ctx context.Context, addrs []string, dial func(string) (api.PeerConn, error), do func(context.Context, pb.SetsClient) error) error {
	var errs []error
	one := func(addr string, left int) error {
		conn, err := dial(addr)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }() // nothing is lost with a connection that will not close
		patience := rootPatience
		if end, ok := ctx.Deadline(); ok { // leave time for the other addresses if one does not answer
			patience = min(patience, time.Until(end)/time.Duration(left))
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return do(ctx, pb.NewSetsClient(conn))
	}
	for i, addr := range addrs {
		err := one(addr, len(addrs)-i)
		if err == nil {
			return nil
		}
		if errs = append(errs, fmt.Errorf("%s: %w", addr, err)); !ofNode(err) {
			break
		}
	}
	err := errors.Join(errs...)
	if unanswered(err) {
		err = fmt.Errorf("%w: no AllocSvr of the root Set answers at %v: %w", seq.ErrNoRoute, addrs, err)
	}
	return err
}

// unanswered reports whether there was no answer, or none in time.
func unanswered(err error) bool {
	code := rpc.CodeOf(err)
	return code == pb.ErrorCode_ERROR_CODE_UNSPECIFIED || code == pb.ErrorCode_ERROR_CODE_DEADLINE
}

// ofNode reports whether another node of the root Set may succeed.
func ofNode(err error) bool {
	return unanswered(err) || errors.Is(err, seq.ErrNoQuorum) || errors.Is(err, seq.ErrShuttingDown) || errors.Is(err, seq.ErrClockOff)
}

// rootPatience bounds the wait for one node of the root Set.
const rootPatience = 2 * time.Second

// RegisterAdmin registers the operators' service on a server. Its replies lack the members and the stores'
// state, which only a whole process has.
func (n *Node) RegisterAdmin(srv grpc.ServiceRegistrar) {
	pb.RegisterAdminServer(srv, n.admin(nil, func(context.Context) []*pb.StoreStatus { return nil }))
}

func (n *Node) admin(view *membership.View, stores func(context.Context) []*pb.StoreStatus) *api.Admin {
	a := n.alloc
	return &api.Admin{
		Name: a.name, Session: a.session, Cluster: n.ClusterID(), Era: n.era, Lease: n.cfg.Lease, Sections: a.sections, Owner: a.owner,
		Routes: a.routes, Arbiter: a.arbiter, Nodes: a.nodes, Holder: a.holder, Sessions: n.leases.Sessions, Needed: func() int { return int(a.needed.Load()) },
		Record: a.sets.Known, Ready: n.Ready, View: view, Stores: stores, Clock: a.clock, DevLog: n.cfg.DevLog,
		Keys: func() documents.KeyEntries { return *n.keys.Load() }, KeyHashes: documents.NewKeys(context.Background(), n.group, a.session, *a.sections.Mapping()),
		ClockAhead: n.leases.ClockAhead,
		Growth:     api.Growth{Decide: n.decideSpace, Tell: n.extend, Extend: n.Extend},
		ReadSections: func(ctx context.Context) (map[seq.Register]quorum.Outcome, error) {
			return n.group.ReadPrefix(ctx, a.session, string(seq.KindSection))
		},
	}
}

// tellNobody refuses added spaces, because the node cannot tell the stores.
func tellNobody(context.Context, seq.Mapping) error {
	return fmt.Errorf("%w: this node is no process of its own and tells stores nothing", seq.ErrBadArgument)
}

// Ready returns nil if this node serves all its sections, and otherwise the reason why not.
func (n *Node) Ready() error {
	if err := n.alloc.Ready(); err != nil {
		return err
	}
	return n.ids.Ready()
}

// ClusterID returns the id of the node's cluster.
func (n *Node) ClusterID() string { return n.cluster }

// Incarnation returns the life of the node's cluster. It is not known if the stores did not tell it.
func (n *Node) Incarnation() seq.Incarnation { return n.life }

// hears returns api.Peer.Hear.
func (n *Node) hears() func(seq.Session) bool {
	if n.pings == nil {
		return nil
	}
	return n.pings.hears
}

// runs returns the functions that Run runs. Each ends with its context.
func (n *Node) runs() []func(context.Context) error {
	runs := []func(context.Context) error{n.leases.Run, n.alloc.Run}
	if n.pings != nil {
		runs = append(runs, n.pings.run)
	}
	for _, e := range n.endpoints {
		runs = append(runs, e.Run)
	}
	return runs
}

// Run serves until ctx ends, and then returns nil. If the node cannot go on, it returns the reason. Run
// hands nothing over: call Leave before ctx ends. Run works once.
func (n *Node) Run(ctx context.Context) error {
	life, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	runs := n.runs()
	ended := make(chan struct{}, len(runs))
	for _, run := range runs {
		go func() {
			if err := run(life); err != nil && life.Err() == nil {
				cancel(err)
			}
			ended <- struct{}{}
		}()
	}
	for range runs {
		<-ended
	}
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(life)
}

// Leave hands every section over, and gives up tags and worker ids. If a section cannot be handed over,
// Leave logs that, and the lease runs out. The node cannot be used afterwards.
func (n *Node) Leave(ctx context.Context) {
	if err := n.release(ctx); err != nil {
		n.cfg.Logger.Warn("tags and worker ids not released", "error", err)
	}
	if err := n.alloc.owner.Leave(ctx, n.parked); err != nil {
		n.cfg.Logger.Warn("not everything was handed over", "error", err)
	}
}

// Close cancels the messages under way. Call it after Run has returned.
func (n *Node) Close() {
	n.peers.Close()
	n.group.Close()
}

// Sections returns the sections that the node owns or has sealed, so that a test can check the invariants.
func (n *Node) Sections() []section.View { return n.alloc.sections.Views() }

// Counts returns the takeovers, hand-overs and steps of the node since its start.
func (n *Node) Counts() (takeovers, handoffs, steps uint64) {
	o := n.alloc.owner
	return o.Takeovers(), o.Handoffs(), n.alloc.sections.Totals().Steps
}

// Preempted returns the number of sections that the node took over from a silent node whose lease still ran.
func (n *Node) Preempted() uint64 { return n.alloc.owner.Preempted() }

// Suspect names the nodes that are silent, with their sessions: see owner.Owner.Suspect.
func (n *Node) Suspect(silent map[string]seq.Session) { n.alloc.owner.Suspect(silent) }

// Memory returns the memory of the counters of UIDs.
func (n *Node) Memory() section.Memory { return n.alloc.sections.Memory() }

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
	"github.com/seqsvr/seqsvr/allocsvr/globalid"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/audit"
	"github.com/seqsvr/seqsvr/allocsvr/keyhash"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/allocsvr/segment"
	"github.com/seqsvr/seqsvr/allocsvr/setdocs"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/membership"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Wiring is what a Node reaches the world by. The Server puts sockets and the machine's
// clocks in, the simulator of tests/sim a network and clocks of its own.
type Wiring struct {
	Identity quorum.Identity // of the stores' cluster: Ref, N, R, W, Mapping, MaxLease
	Stores   []quorum.NamedStore
	Addr     string                                  // of this node, as callers and peers reach it
	Secret   seq.Secret                              // of the session
	Dial     func(addr string) (api.PeerConn, error) // to a peer; does not wait for it
	DialSet  func(addr string) (api.PeerConn, error) // likewise to an AllocSvr of another Set; nil: Dial
	Clock    clock.Clock
	Wall     func() time.Time
	// Stop is told why the process must end: the stores do not let it in.
	Stop func(error)
	// Stale is told that a store has another member list, or that spaces may have been added: the
	// owner of the node looks at the stores and calls Reconfigure and Extend. It must not block; nil: the list never changes.
	Stale func()
	// Tell has W stores hear of a mapping to which a space was added. If nil, none can be added here.
	Tell func(ctx context.Context, m seq.Mapping) error
	// Keys are how string keys are hashed, as long as the session lasts; nil: by seq.HashKey.
	Keys keyhash.Entries
	// First is what the Set had and knew when it was read before the start; zero: the cluster is alone.
	First setdocs.First
	// Parked is the file of parked counters; empty: none are kept.
	Parked string
	// Regions are nodes of other regions' clusters, which must make other snowflake IDs.
	Regions []globalid.Region
	// Audit takes down which snowflake IDs are handed out; nil: nothing does.
	Audit *audit.Log
	// Limits of what callers can make the node keep; nil: as Config says.
	Limits *api.Limits
}

// Node is one AllocSvr without its process: no listener, no gossip, no search for the
// stores. It owns nothing yet when it is made. Safe for concurrent use.
type Node struct {
	cfg     Config
	era     seq.Era
	cluster string
	life    seq.Incarnation // of the stores, as they were found
	parked  string
	look    func() // at the stores, soon
	keys    atomic.Pointer[keyhash.Entries]
	growing sync.Mutex                                     // held by Extend
	extend  func(ctx context.Context, m seq.Mapping) error // as Wiring.Tell
	// require has the stores require a protocol of sessions. If nil, the node is no process of
	// its own and all nodes are of one build.
	require func(ctx context.Context, protocol int) error

	alloc     *Alloc
	leases    *quorum.Leases
	group     *quorum.Group
	limits    *api.Limits
	peers     *api.Peers
	endpoints []endpoint
	ids       *globalid.Service // one of endpoints
	tags      *segment.Service  // likewise
	refused   *refusals
	stores    atomic.Pointer[map[string]string] // what the stores are called, by address
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
	n.alloc, err = NewAlloc(Parts{
		Name: cfg.Name, Addr: w.Addr, Cluster: id.Ref.Cluster, Secret: w.Secret, Lease: cfg.Lease,
		Replicas: id.N, Needed: id.W, Mapping: id.Mapping, First: w.First, Root: n.rootMap(w.DialSet), Registers: n.measure("section"), Documents: group, Leases: keeper{n.leases}, Losses: n.leases.Losses, StoreTime: n.leases.StoreTime, StoresFull: n.leases.Full, Missing: n.missingStores, Peers: n.peers, Keys: w.Keys.Hashers(),
		UIDMemory: n.limits.UIDMemory, Clock: w.Clock, Wall: w.Wall, Logger: cfg.Logger, Traces: cfg.Traces, ExpectAllocs: cfg.ExpectAllocs, Weight: cfg.Weight, Zone: cfg.Zone,
	})
	if err != nil {
		return nil, err
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

// Register puts the node's services on a server, all but the operators' one.
func (n *Node) Register(srv grpc.ServiceRegistrar) {
	a := n.alloc
	pb.RegisterSequenceServer(srv, &api.Sequence{Cluster: n.ClusterID(), Incarnation: n.life, Zone: n.cfg.Zone, Sections: a.sections, RouteTable: a.routes, Sets: a.sets, Limits: n.limits, Keys: a.keyHashers, Unheard: n.look})
	pb.RegisterPeerServer(srv, &api.Peer{Cluster: n.ClusterID(), Session: a.session, Sections: a.sections.Len, Owner: a.owner,
		Known: n.leases.Sessions, Kick: n.leases.Kick, Reread: n.reread, Guard: n.cfg.Guard, Logger: n.cfg.Logger})
	pb.RegisterSetsServer(srv, &api.Sets{Cluster: n.ClusterID(), Era: n.era, Incarnation: n.life, Name: a.name, Docs: a.sets, Sections: a.sections, Moves: a.owner.Moves(), Routes: a.routes,
		Keyhash: keyhash.New(context.Background(), n.group, a.session, *a.sections.Mapping()), Rehash: n.rehash, IDs: n.ids,
		Require: func(ctx context.Context) error { return n.needs(ctx, "Sets", version.Sets) }})
	for _, e := range n.endpoints {
		e.Register(srv)
	}
}

// rehash has the node hash string keys so from now on. seq.ErrConflict if it owns a section,
// the keys of which are counted as before.
func (n *Node) rehash(keys keyhash.Entries) error {
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

// atRoot calls nodes of the root Set one after the other, until one does not fail for reasons of its
// own.
func atRoot(ctx context.Context, addrs []string, dial func(string) (api.PeerConn, error), do func(context.Context, pb.SetsClient) error) error {
	var errs []error
	one := func(addr string, left int) error {
		conn, err := dial(addr)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }() // nothing is lost with a connection that will not close
		patience := rootPatience
		if end, ok := ctx.Deadline(); ok { // one that takes no packets does not use up what is for the others
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

// unanswered says whether there was no answer, or none in time.
func unanswered(err error) bool {
	code := rpc.CodeOf(err)
	return code == pb.ErrorCode_ERROR_CODE_UNSPECIFIED || code == pb.ErrorCode_ERROR_CODE_DEADLINE
}

// ofNode says whether another node of the root Set may do better.
func ofNode(err error) bool {
	return unanswered(err) || errors.Is(err, seq.ErrNoQuorum) || errors.Is(err, seq.ErrShuttingDown) || errors.Is(err, seq.ErrClockOff)
}

// rootPatience bounds how long a node of the root Set is waited for.
const rootPatience = 2 * time.Second

// RegisterAdmin puts the operators' service on a server, without the view of the members
// and the state of the stores that only a whole process has.
func (n *Node) RegisterAdmin(srv grpc.ServiceRegistrar) {
	pb.RegisterAdminServer(srv, n.admin(nil, func(context.Context) []*pb.StoreStatus { return nil }))
}

func (n *Node) admin(view *membership.View, stores func(context.Context) []*pb.StoreStatus) *api.Admin {
	a := n.alloc
	return &api.Admin{
		Name: a.name, Session: a.session, Cluster: n.ClusterID(), Era: n.era, Lease: n.cfg.Lease, Sections: a.sections, Owner: a.owner,
		Routes: a.routes, Arbiter: a.arbiter, Nodes: a.nodes, Holder: a.holder, Sessions: n.leases.Sessions, Needed: func() int { return int(a.needed.Load()) },
		Record: a.sets.Known, Ready: n.Ready, View: view, Stores: stores, Clock: a.clock, DevLog: n.cfg.DevLog,
		Keys: func() keyhash.Entries { return *n.keys.Load() }, KeyHashes: keyhash.New(context.Background(), n.group, a.session, *a.sections.Mapping()),
		ClockAhead: n.leases.ClockAhead,
		Growth:     api.Growth{Decide: n.decideSpace, Tell: n.extend, Extend: n.Extend},
		ReadSections: func(ctx context.Context) (map[seq.Register]quorum.Outcome, error) {
			return n.group.ReadPrefix(ctx, a.session, string(seq.KindSection))
		},
	}
}

// tellNobody refuses spaces at a node that tells the stores nothing.
func tellNobody(context.Context, seq.Mapping) error {
	return fmt.Errorf("%w: this node is no process of its own and tells stores nothing", seq.ErrBadArgument)
}

// Ready is nil while this node serves everything that it should, else the reason why not.
func (n *Node) Ready() error {
	if err := n.alloc.Ready(); err != nil {
		return err
	}
	return n.ids.Ready()
}

// ClusterID is the cluster that the node belongs to.
func (n *Node) ClusterID() string { return n.cluster }

// Incarnation is the life of the cluster that the node belongs to. It is not known if the stores
// did not tell it.
func (n *Node) Incarnation() seq.Incarnation { return n.life }

// runs are the goroutines that Run consists of; each ends with its context.
func (n *Node) runs() []func(context.Context) error {
	runs := []func(context.Context) error{n.leases.Run, n.alloc.Run}
	for _, e := range n.endpoints {
		runs = append(runs, e.Run)
	}
	return runs
}

// Run gains, keeps and gives until ctx ends, and returns nil then, or why the node
// cannot go on. It hands nothing over: Leave does, before ctx ends. Run works once.
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

// Leave hands everything over, and gives tags and worker ids up; what could not be
// handed over is logged, and its leases run out. The node is of no use afterwards.
func (n *Node) Leave(ctx context.Context) {
	if err := n.release(ctx); err != nil {
		n.cfg.Logger.Warn("tags and worker ids not released", "error", err)
	}
	if err := n.alloc.owner.Leave(ctx, n.parked); err != nil {
		n.cfg.Logger.Warn("not everything was handed over", "error", err)
	}
}

// Close ends all messages that are under way. Call it after Run has returned.
func (n *Node) Close() {
	n.peers.Close()
	n.group.Close()
}

// Sections lists the sections that the node owns or has sealed, for checks of the
// invariants from outside.
func (n *Node) Sections() []section.View { return n.alloc.sections.Views() }

// Counts are the takeovers, hand-overs and steps of the node since its start.
func (n *Node) Counts() (takeovers, handoffs, steps uint64) {
	o := n.alloc.owner
	return o.Takeovers(), o.Handoffs(), n.alloc.sections.Totals().Steps
}

// Memory is what the counters of UIDs take.
func (n *Node) Memory() section.Memory { return n.alloc.sections.Memory() }

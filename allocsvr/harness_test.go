package allocsvr

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/api"
	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/allocsvr/owner"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/tests/kit/memstore"
)

// patient bounds a test's wait for a condition on a busy machine. There a node may be refused hand-overs,
// each time for longer, because its leases lapse.
const patient = 90 * time.Second

// fleet is a cluster of Allocs over stores in memory. The nodes are connected without a network.
type fleet struct {
	t      *testing.T
	clock  clock.Clock
	own    clock.Clock // clock of the nodes that start; if nil, they use the field clock
	stores *memstore.Cluster
	lease  time.Duration
	log    *slog.Logger
	calls  history.Recorder
	// renews changes the stores that a node's leases use. If nil, they are unchanged.
	renews func(node string, s quorum.Store) quorum.Store
	keys   seq.KeyHashers                                                             // of the nodes that start
	zones  map[string]string                                                          // by name, of the nodes that start
	root   func(ctx context.Context, addr string, newerThan uint64) (sets.Map, error) // if nil, the fleet has no other Sets
	// before changes a node before it runs. It may be nil.
	before func(*node)
	ids    noIDs

	mu    sync.Mutex // guards nodes
	nodes map[string]*node
}

type node struct {
	*Alloc
	*section.Table
	*owner.Owner
	group  *quorum.Group
	probes *probes
	leases *quorum.Leases
	stop   context.CancelFunc
	done   chan struct{}
	file   string
	keys   seq.KeyHashers
	room   atomic.Pointer[owner.Room] // limit on the counters in an answer; if nil, the default
}

func newFleet(t *testing.T, spaces ...seq.Space) *fleet {
	t.Helper()
	return newFleetOn(t, clock.Boot(), spaces...)
}

func newFleetOn(t *testing.T, c clock.Clock, spaces ...seq.Space) *fleet {
	t.Helper()
	m, err := seq.NewMapping(spaces...)
	if err != nil {
		t.Fatal(err)
	}
	level := slog.LevelError
	if testing.Verbose() && os.Getenv("SEQ_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	f := &fleet{t: t, clock: c, lease: time.Second, nodes: map[string]*node{},
		log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))}
	f.stores = memstore.New(3, m, f.clock, 10*time.Second)
	t.Cleanup(func() {
		for _, n := range f.all() {
			n.kill()
		}
		if err := history.Check(f.calls.Calls()).Err(); err != nil {
			t.Errorf("history: %v", err)
		}
	})
	return f
}

func (f *fleet) all() []*node {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*node
	for _, n := range f.nodes {
		out = append(out, n)
	}
	return out
}

func (f *fleet) at(addr string) *node {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodes[addr]
}

// start runs a node of that name; its address is its name. file may hold parked counters.
func (f *fleet) start(name string, expect int, file string) *node {
	f.t.Helper()
	group, err := f.stores.Group()
	if err != nil {
		f.t.Fatal(err)
	}
	n := &node{group: group, probes: &probes{Registers: swappable(group)}, done: make(chan struct{}), file: file, keys: f.keys}
	secret := seq.NewSecret("")
	session := secret.Session()
	own := f.own
	if own == nil {
		own = f.clock
	}
	log := f.log.With("node", name)
	n.leases, err = quorum.NewLeases(quorum.LeaseConfig{
		Ref: f.stores.Ref, Session: session, Name: name, Addr: name, Lease: f.lease, N: 3, W: 2, Clock: own, Logger: log, Step: group.Step,
		OnLost:     func(h *quorum.Hold) { n.lost(h.Register(), h.Round()) },
		OnRoutes:   func() { n.routes.Look() },
		OnSessions: func() { n.sessionsChanged() },
	}, f.named(name))
	if err != nil {
		f.t.Fatal(err)
	}
	first, err := documents.ReadSets(f.t.Context(), group, session)
	if err != nil {
		f.t.Fatal(err)
	}
	n.Alloc, err = NewAlloc(Parts{Name: name, Addr: name, Cluster: f.stores.Ref.Cluster, Secret: secret, Lease: f.lease, Replicas: 3, Needed: 2,
		Mapping: f.stores.Mapping, First: first, Root: f.root, Registers: n.probes, Preempting: quorum.Preempting{Group: group}, Documents: group, Leases: keeper{n.leases}, Losses: n.leases.Losses, StoreTime: n.leases.StoreTime, StoreRoom: n.leases.Room, Peers: loopback{f, session}, Keys: f.keys,
		Clock: own, Wall: time.Now, Logger: log, ExpectAllocs: expect, Weight: 100, Zone: f.zones[name]})
	if err != nil {
		f.t.Fatal(err)
	}
	n.Table, n.Owner = n.sections, n.owner
	if file != "" {
		if err := n.Adopt(file); err != nil {
			f.t.Fatal(err)
		}
	}
	if f.before != nil {
		f.before(n)
	}
	f.mu.Lock()
	f.nodes[name] = n
	f.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	var wg sync.WaitGroup
	wg.Go(func() { _ = n.leases.Run(ctx) })
	wg.Go(func() {
		if err := n.Alloc.Run(ctx); err != nil {
			f.t.Errorf("%s: %v", name, err)
		}
	})
	go func() { wg.Wait(); close(n.done) }()
	return n
}

func (f *fleet) named(node string) []quorum.NamedStore {
	list := f.stores.Named()
	for i := range list {
		if f.renews != nil {
			list[i].Store = f.renews(node, list[i].Store)
		}
	}
	return list
}

// kill stops a node as a crash does, as far as others can see.
func (n *node) kill() {
	n.stop()
	<-n.done
}

// leave stops a node in order.
func (f *fleet) leave(n *node) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	if err := n.Leave(ctx, n.file); err != nil {
		f.t.Errorf("leave: %v", err)
	}
	n.kill()
	f.mu.Lock()
	delete(f.nodes, n.name)
	f.mu.Unlock()
}

// loopback calls the other Allocs of the fleet directly.
type loopback struct {
	f    *fleet
	from seq.Session
}

func (l loopback) peer(addr string, to seq.Session) (*node, error) {
	n := l.f.at(addr)
	if n == nil || n.session != to {
		return nil, fmt.Errorf("no such peer: %s", addr)
	}
	return n, nil
}

func (l loopback) Offer(_ context.Context, addr string, to seq.Session, sections []handover.Sealed) error {
	n, err := l.peer(addr, to)
	if err != nil {
		return err
	}
	return n.Accept(sections)
}

func (l loopback) Take(ctx context.Context, addr string, to seq.Session, ids []seq.SectionID) ([]seq.SectionID, error) {
	n, err := l.peer(addr, to)
	if err != nil {
		return nil, err
	}
	return n.TakeOffered(ctx, ids), nil
}

func (f *fleet) until(what string, ok func() bool) {
	f.t.Helper()
	waitUntil(f.t, patient, what, ok)
}

// waitUntil waits for a condition, and no longer than most.
func waitUntil(t *testing.T, most time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(most)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for: %s", most, what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// serving waits until the nodes together serve every section.
func (f *fleet) serving(nodes ...*node) {
	f.t.Helper()
	f.until("all sections served", func() bool {
		total := 0
		for _, n := range nodes {
			serving, _ := n.Census()
			total += serving
		}
		return total == f.stores.Mapping.Sections()
	})
}

// next takes a number wherever it can be had, as a patient caller does, and
// records the call.
func (f *fleet) next(uid seq.UID) seq.Seq {
	f.t.Helper()
	deadline := time.Now().Add(patient)
	for {
		for _, n := range f.all() {
			start := f.clock.Now()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			got := n.Take(ctx, &f.stores.Mapping.Spaces[0], seq.PlainAll(uid), nil)
			cancel()
			if len(got.Faults) == 0 {
				f.calls.Add(history.Call{Key: history.Key{UID: uint64(uid)}, First: got.First[0], Last: got.Last[0], Start: start, End: f.clock.Now()})
				return seq.Seq(got.First[0])
			}
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("no number for uid %d within %v", uid, patient)
		}
		<-time.After(time.Millisecond)
	}
}

func drainRequest(name string) *pb.DrainRequest { return &pb.DrainRequest{Node: name} }

// admin returns the operators' service of the node, without members and stores.
func (n *node) admin() *api.Admin {
	a := n.Alloc
	return &api.Admin{Name: a.name, Session: a.session, Sections: a.sections, Owner: a.owner, Routes: a.routes, Arbiter: a.arbiter, Nodes: a.nodes,
		Holder: a.holder, Sessions: a.leases.Sessions, Needed: func() int { return int(a.needed.Load()) }, Ready: a.Ready, Clock: a.clock, Record: a.sets.Known,
		KeyHashes: documents.NewKeys(context.Background(), n.group, a.session, *a.sections.Mapping()),
		Stores:    func(context.Context) []*pb.StoreStatus { return nil },
		ReadSections: func(ctx context.Context) (map[seq.Register]quorum.Outcome, error) {
			return n.group.ReadPrefix(ctx, a.session, string(seq.KindSection))
		}}
}

package globalid

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

const (
	testLease = time.Second
	// storeAhead bounds how far ahead of their clocks the stores accept a mark.
	storeAhead = quorum.WorkerAhead
	patience   = 30 * time.Second
)

// cluster is three real acceptors in memory behind a real quorum.Group. Its clocks
// stand still unless a test or a waiting generator moves them.
type cluster struct {
	t      testing.TB
	clock  *clock.Manual // of the stores, for leases
	wall   *atomic.Int64 // true time, milliseconds since 1970
	stores []*store
	group  *quorum.Group
	pauses clock.Clock // the clock of the nodes' pauses; if nil, the machine's clock

	mu    sync.Mutex // guards nodes
	nodes []*node    // all that ever were
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{t: t, clock: clock.NewManual(10 * time.Second), wall: new(atomic.Int64)}
	c.wall.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	return c.withStores()
}

// withStores gives the cluster its stores.
func (c *cluster) withStores() *cluster {
	t := c.t
	var named []quorum.NamedStore
	for i := range 3 {
		registers := map[seq.Register]acceptor.State{}
		for _, r := range seq.FixedRegisters() {
			registers[r] = acceptor.State{}
		}
		a, err := acceptor.New(acceptor.Config{Registers: registers, MaxLease: 10 * time.Second, LeaseBound: testLease})
		if err != nil {
			t.Fatal(err)
		}
		s := &store{c: c, uuid: fmt.Sprintf("uuid-%d", i), a: a}
		c.stores = append(c.stores, s)
		named = append(named, quorum.NamedStore{Name: s.uuid, Store: s})
	}
	group, err := quorum.NewGroup(quorum.Config{N: 3, R: 2, W: 2}, named)
	if err != nil {
		t.Fatal(err)
	}
	c.group = group
	t.Cleanup(group.Close)
	return c
}

// pass lets time pass for all nodes. Living nodes keep their leases.
func (c *cluster) pass(d time.Duration) {
	for ; d > 0; d -= testLease / 4 {
		step := min(d, testLease/4)
		c.clock.Advance(step)
		c.wall.Add(step.Milliseconds())
		for _, n := range c.all() {
			n.leases.renew()
		}
	}
}

func (c *cluster) all() []*node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*node(nil), c.nodes...)
}

// fail sets what becomes of the steps of worker ids that a store is sent.
func (c *cluster) fail(f fault, stores ...int) {
	for _, i := range stores {
		c.stores[i].setFault(f)
	}
}

type fault int

const (
	works fault = iota
	failsNotApplied
	failsButApplied
)

var errFault = errors.New("connection lost")

// store is one replica.
type store struct {
	c    *cluster
	uuid string

	mu    sync.Mutex // guards all below
	a     *acceptor.Acceptor
	fault fault
}

func (s *store) setFault(f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// dump is all that the store has.
func (s *store) dump() []quorum.RegisterState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.a.Dump("", 1000)
}

// replace puts another acceptor in the place of the store's.
func (s *store) replace(a *acceptor.Acceptor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.a = a
}

func (s *store) setFloors(f quorum.Floors) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.a.SetFloors(f)
}

func (s *store) Read(_ context.Context, req quorum.ReadRequest) (quorum.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return quorum.Reply{UUID: s.uuid, Results: s.a.Read(req, s.c.clock.Now())}, nil
}

func (s *store) Prepare(_ context.Context, req quorum.PrepareRequest) (quorum.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	results, err := s.a.Prepare(req, s.c.clock.Now())
	s.a.Committed()
	return quorum.Reply{UUID: s.uuid, Results: results}, err
}

func (s *store) Step(_ context.Context, req quorum.StepRequest) (quorum.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.fault
	if req.Items[0].Register.Kind() != seq.KindWorker {
		f = works
	}
	if f == failsNotApplied {
		return quorum.Reply{}, errFault
	}
	results, err := s.a.Step(req, acceptor.Limits{WorkerMax: uint64(s.c.wall.Load() + storeAhead.Milliseconds())})
	s.a.Committed()
	if f == failsButApplied {
		return quorum.Reply{}, errFault
	}
	return quorum.Reply{UUID: s.uuid, Results: results}, err
}

func (s *store) Renew(_ context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply, err := s.a.Renew(req, s.c.clock.Now())
	reply.UUID = s.uuid
	return reply, err
}

func (s *store) Release(_ context.Context, req quorum.ReleaseRequest) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.a.Release(req, s.c.clock.Now())
	return s.uuid, err
}

// max returns the highest mark of a worker register at any store.
func (c *cluster) max(reg seq.Register) uint64 {
	m := uint64(0)
	for _, s := range c.stores {
		reply, _ := s.Read(context.Background(), quorum.ReadRequest{Registers: []seq.Register{reg}})
		m = max(m, reply.Results[0].Max)
	}
	return m
}

// keeper is a node's leases, renewed when the test says so.
type keeper struct {
	n  *node
	mu sync.Mutex // guards all below
	on map[seq.Register]uint64
	// dead: the process is gone.
	dead bool
}

type testHold struct {
	k     *keeper
	reg   seq.Register
	round uint64
}

func (h testHold) Drop() {
	h.k.mu.Lock()
	if h.k.on[h.reg] == h.round {
		delete(h.k.on, h.reg)
	}
	h.k.mu.Unlock()
	h.k.send(nil, []quorum.LeaseItem{{Register: h.reg, Round: h.round}})
}

// Nothing here asks when the lease ends.
func (testHold) Until() time.Duration   { return 0 }
func (testHold) Ready() <-chan struct{} { return nil }

func (k *keeper) Attach(reg seq.Register, round uint64) ownership.Lease {
	k.mu.Lock()
	k.on[reg] = round
	k.mu.Unlock()
	k.send([]quorum.LeaseItem{{Register: reg, Round: round}}, nil)
	return testHold{k, reg, round}
}

func (k *keeper) Sessions() []quorum.SessionView {
	var out []quorum.SessionView
	for _, n := range k.n.c.all() {
		n.leases.mu.Lock()
		out = append(out, quorum.SessionView{Session: n.session, Name: n.name, Dead: n.leases.dead})
		n.leases.mu.Unlock()
	}
	return out
}

func (k *keeper) renew() { k.send(nil, nil) }

func (k *keeper) send(attach, drop []quorum.LeaseItem) {
	k.mu.Lock()
	dead := k.dead
	if attach == nil {
		for reg, round := range k.on {
			attach = append(attach, quorum.LeaseItem{Register: reg, Round: round})
		}
	}
	req := quorum.RenewRequest{Session: k.n.session, Name: k.n.name + k.n.session.String(), Addr: "a", Lease: testLease,
		Attach: attach, Drop: drop, Attached: uint64(len(k.on))}
	k.mu.Unlock()
	if dead {
		return
	}
	for _, s := range k.n.c.stores {
		reply, err := s.Renew(context.Background(), req)
		if err != nil {
			continue
		}
		for _, item := range reply.Lost {
			k.mu.Lock()
			if k.on[item.Register] == item.Round {
				delete(k.on, item.Register)
			}
			k.mu.Unlock()
			if svc := k.n.svc.Load(); svc != nil {
				svc.Lost(item.Register, item.Round)
			}
		}
	}
}

// node is one AllocSvr's endpoint.
type node struct {
	c       *cluster
	name    string
	secret  seq.Secret
	session seq.Session  // of secret
	offset  atomic.Int64 // its clock from the true time, milliseconds
	leases  *keeper
	deaf    atomic.Bool  // other nodes do not reach it
	slow    atomic.Int64 // what Tell returns for this node, in ns, as for a node of an older build
	svc     atomic.Pointer[Service]
	cancel  context.CancelFunc
	done    chan error
}

// start runs a node; change may alter its configuration.
func (c *cluster) start(name string, change ...func(*Config)) *node {
	c.t.Helper()
	secret := seq.NewSecret("")
	n := &node{c: c, name: name, secret: secret, session: secret.Session(), done: make(chan error, 1)}
	n.leases = &keeper{n: n, on: map[seq.Register]uint64{}}
	cfg := Config{Documents: c.group, Config: workers.Config{
		Name: name, Holder: &ownership.Holder{Session: n.session, Registers: c.group, Leases: n.leases},
		ReadPrefix: c.group.ReadPrefix, Sessions: n.leases.Sessions,
		Tell:       c.tell,
		ClockAhead: func() (time.Duration, bool) { return time.Duration(n.offset.Load()) * time.Millisecond, true },
		Wall:       func() time.Time { return time.UnixMilli(c.wall.Load() + n.offset.Load()) },
		Sleep: func(ctx context.Context, d time.Duration) error {
			c.wall.Add(max(1, d.Milliseconds()))
			return ctx.Err()
		},
	}}
	cfg.Clock = c.pauses
	for _, f := range change {
		f(&cfg)
	}
	svc, err := New(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	n.svc.Store(svc)
	c.mu.Lock()
	c.nodes = append(c.nodes, n)
	c.mu.Unlock()
	n.leases.renew()
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	go func() { n.done <- svc.Run(ctx) }()
	c.t.Cleanup(n.kill)
	return n
}

// tell has the node of a session read the namespaces again.
func (c *cluster) tell(ctx context.Context, session seq.Session) (time.Duration, error) {
	for _, n := range c.all() {
		if n.session == session && !n.deaf.Load() {
			return time.Duration(n.slow.Load()), n.svc.Load().Refresh(ctx)
		}
	}
	return 0, errFault
}

// kill ends a node without a message to any other.
func (n *node) kill() {
	n.leases.mu.Lock()
	n.leases.dead = true
	n.leases.mu.Unlock()
	n.cancel()
	n.svc.Load().stop()
}

// leave ends a node cleanly.
func (n *node) leave() {
	n.c.t.Helper()
	if err := n.svc.Load().Release(context.Background()); err != nil {
		n.c.t.Errorf("%s: release: %v", n.name, err)
	}
	if err := n.c.group.EndSession(context.Background(), n.secret); err != nil {
		n.c.t.Errorf("%s: end session: %v", n.name, err)
	}
	n.kill()
}

// jump moves a node's clock.
func (n *node) jump(d time.Duration) { n.offset.Add(d.Milliseconds()) }

// collector has prometheus read what a node sends.
type collector struct{ *Service }

func (collector) Describe(chan<- *prometheus.Desc)      {}
func (c collector) Collect(ch chan<- prometheus.Metric) { c.Send(ch) }

// gauge is a metric of a namespace, -1 if the node has none of that name.
func (n *node) gauge(name, namespace string) float64 {
	n.c.t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(collector{n.svc.Load()})
	all, err := r.Gather()
	if err != nil {
		n.c.t.Fatal(err)
	}
	for _, family := range all {
		for _, m := range family.GetMetric() {
			label := m.GetLabel()
			if family.GetName() == name && (len(label) == 0 && namespace == "" || len(label) > 0 && label[0].GetValue() == namespace) {
				return m.GetGauge().GetValue()
			}
		}
	}
	return -1
}

func layout(t testing.TB, text string) snowflake.Layout {
	t.Helper()
	l, err := namespaces.ParseLayout(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// gen hands out IDs of a namespace at a node.
func (n *node) gen(namespace string, count int) ([]snowflake.ID, issue, error) {
	return n.genWithin(patience, namespace, count)
}

func (n *node) genWithin(d time.Duration, namespace string, count int) ([]snowflake.ID, issue, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	got, err := n.svc.Load().Generate(ctx, namespaces.Ref{Name: namespace}, count)
	if err != nil {
		return nil, issue{}, err
	}
	ids := make([]snowflake.ID, 0, count)
	for _, b := range got.Batches {
		ids = b.AppendTo(ids)
	}
	return ids, issue{got.Namespace.Name, got.Layout, got.Datacenter, got.Worker}, nil
}

// issue describes the IDs of one call.
type issue struct {
	Namespace, Layout string
	Datacenter        snowflake.Datacenter
	Worker            snowflake.Worker
}

// lease returns a node's lease in a namespace, or nil if it has none.
func (n *node) lease(namespace string) *workers.Lease {
	return n.svc.Load().workers.Of(namespace).Current()
}

// must is gen where an error fails the test.
func (n *node) must(namespace string, count int) ([]snowflake.ID, issue) {
	n.c.t.Helper()
	ids, got, err := n.gen(namespace, count)
	if err != nil {
		n.c.t.Fatalf("%s: %v", n.name, err)
	}
	if len(ids) != count {
		n.c.t.Fatalf("%s: got %d ids, want %d", n.name, len(ids), count)
	}
	return ids, got
}

// add records a namespace.
func (c *cluster) add(n *node, name, layout string) namespaces.Namespace {
	c.t.Helper()
	ns, err := n.svc.Load().names.Put(context.Background(), namespaces.Edit{Name: name, Layout: layout})
	if err != nil {
		c.t.Fatal(err)
	}
	return ns
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

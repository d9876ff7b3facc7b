package allocsvr

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/allocsvr/nodes"
	"github.com/seqsvr/seqsvr/allocsvr/tenure"
	"github.com/seqsvr/seqsvr/internal/clock"
	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/internal/tracing"
	"github.com/seqsvr/seqsvr/internal/wake"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Alloc is the allocator behind the gRPC handlers: the sections in memory and
// everything that gains, keeps and gives them. Safe for concurrent use.
type Alloc struct {
	name     string
	addr     string // of this node, as callers and peers reach it
	cluster  string
	secret   seq.Secret
	session  seq.Session // of secret
	lease    time.Duration
	replicas atomic.Int64 // N
	needed   atomic.Int64 // W
	mapping  seq.Mapping
	holder   *tenure.Holder // of sections and of the arbiter's lease
	leases   Leases
	losses   func() uint64
	silent   func() []string // stores that did not answer within the lease
	peers    Peers
	clock    clock.Clock
	wall     func() time.Time
	log      *slog.Logger
	traces   *tracing.Tracer

	array        []cell  // one a section, side by side: takes find theirs without a pointer
	cells        []*cell // the same
	limits       *Limits
	inWork       *rpc.Admission // of limits
	stepper      *tenure.Stepper[rising]
	kept         handover.Kept
	routes       *arbiter.Routes
	seeker       *wake.Signal
	giver        *wake.Signal
	arbiterLease *arbiter.Lease // of the arbiter
	arbiter      *arbiter.Arbiter

	leaving atomic.Bool // no section is sought or taken from peers any more
	// gaining is held in part by each acquisition that leaving would not let begin, and in
	// whole by Leave, which so waits for them: their counters are handed on or parked like
	// all others.
	gaining *semaphore.Weighted
	gone    atomic.Bool // no section is installed any more; set before the last are sealed
	fatal   chan error  // first broken invariant
	started time.Duration
	nodes   *nodes.Nodes
	stats   stats
}

// Parts are what an Alloc is made of; the Server wires them, tests put others in.
type Parts struct {
	Name      string
	Addr      string
	Cluster   string
	Secret    seq.Secret // of its session
	Lease     time.Duration
	Replicas  int // N
	Needed    int // W
	Mapping   seq.Mapping
	Registers tenure.Registers
	Documents arbiter.Documents
	Leases    Leases
	// Losses moves on before any hold of Leases may come to be worth less than it said,
	// as quorum.Leases has it; nil: each hold is asked for each batch.
	Losses func() uint64
	// Missing names the stores that did not answer within the lease, for people; nil:
	// it is not told which.
	Missing      func() []string
	Peers        Peers
	Clock        clock.Clock
	Wall         func() time.Time // time.Now, or a test's
	Logger       *slog.Logger
	Traces       *tracing.Tracer // nil: none
	ExpectAllocs int
	Weight       uint32
	Limits       *Limits // nil: the defaults
}

// NewAlloc makes an Alloc that owns nothing yet.
func NewAlloc(p Parts) (*Alloc, error) {
	if err := p.Mapping.Validate(); err != nil {
		return nil, err
	}
	if p.Limits == nil {
		p.Limits = NewLimits(Config{})
	}
	a := &Alloc{
		gaining: semaphore.NewWeighted(gainers),
		name:    p.Name, addr: p.Addr, cluster: p.Cluster, secret: p.Secret, session: p.Secret.Session(), lease: p.Lease, mapping: p.Mapping,
		leases: p.Leases, silent: p.Missing, peers: p.Peers,
		clock: p.Clock, wall: p.Wall, log: p.Logger, traces: p.Traces,
		limits: p.Limits, inWork: p.Limits.inWork, fatal: make(chan error, 1), started: p.Clock.Now(), stats: newStats(len(p.Mapping.Spaces)),
	}
	a.holder = &tenure.Holder{Session: a.session, Registers: p.Registers, Leases: p.Leases}
	a.replicas.Store(int64(p.Replicas))
	a.needed.Store(int64(p.Needed))
	a.losses = p.Losses
	if a.losses == nil {
		var asked atomic.Uint64
		a.losses = func() uint64 { return asked.Add(1) }
	}
	a.array, a.cells = make([]cell, p.Mapping.Sections()), make([]*cell, p.Mapping.Sections())
	for i := range p.Mapping.Spaces {
		space := &a.mapping.Spaces[i]
		for id := space.First; id < space.First+seq.SectionID(space.Sections); id++ {
			a.cells[id] = &a.array[id]
			a.array[id].init(id, space)
		}
	}
	a.stepper = tenure.NewStepper[rising](a.holder, a.clock, a.traces)
	a.seeker, a.giver = wake.New(), wake.New()
	a.nodes = nodes.New(nodes.Config{Self: quorum.SessionView{Session: a.session, Name: a.name, Addr: a.addr},
		Sessions: func() []quorum.SessionView { return a.leases.Sessions() }, Lease: a.lease, Clock: a.clock})
	a.plans(p)
	return a, nil
}

// plans makes what the node has to do with the route table.
func (a *Alloc) plans(p Parts) {
	a.routes = arbiter.NewRoutes(arbiter.RoutesConfig{Name: a.name, Session: a.session, Mapping: a.mapping, Documents: p.Documents,
		Heard: func() uint64 { return a.leases.RouteVersion() }, Clock: a.clock, Wall: a.wall, Logger: a.log})
	a.routes.OnChange(a.seeker.Kick)
	a.routes.OnChange(a.giver.Kick)
	a.arbiterLease = arbiter.NewLease(a.holder, a.log)
	a.arbiter = arbiter.New(arbiter.Config{Name: a.name, Weight: p.Weight, Expect: p.ExpectAllocs, Sections: a.mapping.Sections(),
		Routes: a.routes, Lease: a.arbiterLease, Term: a.lease, Present: a.nodes.Present, Awaited: a.nodes.Awaited, Leaving: a.leaving.Load, Clock: a.clock, Logger: a.log})
}

// Run gains, keeps and gives sections until ctx ends or an invariant is broken.
// It does not hand anything over at its end: Leave does.
func (a *Alloc) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for _, run := range []func(context.Context){
		a.stepper.Run, a.routes.Follow, a.seek, a.give, a.arbiter.Run,
	} {
		wg.Go(func() { run(ctx) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-a.fatal:
	}
	cancel()
	wg.Wait()
	return err
}

// fail stops the process: a broken invariant is not to be lived with.
func (a *Alloc) fail(err error) {
	select {
	case a.fatal <- err:
	default:
	}
}

// Sessions has changed: those that wait for another's lease look again.
func (a *Alloc) sessionsChanged() {
	a.seeker.Kick()
	a.arbiter.Look()
}

// lost is called for a register that a store says is another session's.
func (a *Alloc) lost(reg seq.Register, round uint64) {
	epoch := seq.Epoch{Round: round, Session: a.session}
	if id, ok := reg.Section(); ok {
		a.lose(a.cells[id], epoch, seq.Epoch{})
	} else if reg == seq.ArbiterRegister {
		a.arbiterLease.Lost(epoch)
	}
}

// lose drops a section at once: a higher epoch was promised.
func (a *Alloc) lose(c *cell, epoch, by seq.Epoch) {
	if !c.lose(epoch) {
		return
	}
	a.stats.nacks.Add(1)
	a.log.Debug("section lost", "section", c.id, "epoch", epoch.String(), "to", by.String())
	a.seeker.Kick()
}

// leaseLoss is why a lease is not valid.
func (a *Alloc) leaseLoss() error {
	if err := a.quorum(); err != nil {
		return err
	}
	return seq.ErrNoLease
}

// notOwner says who may serve the section, or that this node has no quorum. Needs c.mu.
func (a *Alloc) notOwner(c *cell) error {
	if err := a.waitless(); err != nil {
		return err
	}
	table := a.routes.Table()
	err := &rpc.NotOwnerError{Section: c.id, RouteVersion: table.Version()}
	if c.successor != "" {
		err.Addr = c.successor
		return err
	}
	if node, ok := table.Owner(c.id); ok && node.Name != a.name {
		err.Owner, err.Addr = node.Name, a.nodes.Addr(node)
	}
	if a.leaving.Load() && err.Addr == "" {
		return errors.Join(seq.ErrShuttingDown, err)
	}
	return err
}

// owned lists the sections that this node serves or would if its lease held.
func (a *Alloc) owned() []seq.SectionID {
	var ids []seq.SectionID
	for _, c := range a.cells {
		c.mu.Lock()
		if c.state == owned {
			ids = append(ids, c.id)
		}
		c.mu.Unlock()
	}
	return ids
}

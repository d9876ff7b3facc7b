package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/nodes"
	"github.com/seqsvr/seqsvr/allocsvr/owner"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/allocsvr/setdocs"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Leases keeps this session alive at the replicas and tells of the others.
type Leases interface {
	ownership.Leases
	Sessions() []quorum.SessionView
	RouteVersion() uint64
	// Kick renews at once.
	Kick()
	// Connected is how many replicas answered within the lease.
	Connected() int
}

// keeper makes quorum.Leases a Leases.
type keeper struct{ *quorum.Leases }

// Attach implements ownership.Leases.
func (k keeper) Attach(reg seq.Register, round uint64) ownership.Lease {
	return k.Leases.Attach(reg, round)
}

// Alloc is the rooms of a node that have to do with sections, wired: it tells each of them
// what the others need to know. Safe for concurrent use.
type Alloc struct {
	name     string
	session  seq.Session
	replicas atomic.Int64 // N
	needed   atomic.Int64 // W
	leases   Leases
	silent   func() []string // stores that did not answer within the lease
	clock    clock.Clock
	log      *slog.Logger

	sections     *section.Table
	owner        *owner.Owner
	nodes        *nodes.Nodes
	routes       *arbiter.Routes
	arbiter      *arbiter.Arbiter
	arbiterLease *arbiter.Lease
	sets         *setdocs.Docs
	holder       *ownership.Holder // of sections and of the arbiter's lease
	keys         atomic.Pointer[seq.KeyHashers]
	fatal        chan error      // first broken invariant
	changes      chan rpc.Change // for the log of events
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
	Registers ownership.Registers
	Documents arbiter.Documents
	Leases    Leases
	First     setdocs.First // what the Set knows of Sets, as it was read before the start; zero: the cluster is alone
	// Root reads the map of Sets at a node of the root Set; nil: the cluster is alone.
	Root func(ctx context.Context, addr string, newerThan uint64) (sets.Map, error)
	// Losses moves on before any hold of Leases may come to be worth less than it said,
	// as quorum.Leases has it; nil: each hold is asked for each batch.
	Losses func() uint64
	// StoreTime returns the latest time that the clocks of W stores have reached, as
	// quorum.Leases has it. If nil, it is not known.
	StoreTime func() (time.Time, bool)
	// StoresFull reports whether fewer than W stores have memory for more UIDs and ids of exact
	// spaces, as quorum.Leases has it. If nil, they have.
	StoresFull func() bool
	// Missing names the stores that did not answer within the lease, for people; nil:
	// it is not told which.
	Missing      func() []string
	Peers        owner.Peers
	Keys         seq.KeyHashers // how string keys are hashed; nil: by seq.HashKey
	UIDMemory    func() uint64  // bytes that counters may take, 0: any number; nil: any number
	Clock        clock.Clock
	Wall         func() time.Time // time.Now, or a test's
	Logger       *slog.Logger
	Traces       *tracing.Tracer // nil: none
	ExpectAllocs int
	Weight       uint32
	Zone         string
}

// NewAlloc makes an Alloc that owns nothing yet. Errors: seq.ErrBadMapping.
func NewAlloc(p Parts) (*Alloc, error) {
	a := &Alloc{
		name: p.Name, session: p.Secret.Session(), leases: p.Leases, silent: p.Missing, clock: p.Clock, log: p.Logger,
		fatal: make(chan error, 1), changes: make(chan rpc.Change, maxChanges),
	}
	a.replicas.Store(int64(p.Replicas))
	a.needed.Store(int64(p.Needed))
	a.keys.Store(&p.Keys)
	a.holder = &ownership.Holder{Session: a.session, Registers: p.Registers, Leases: p.Leases}
	var err error
	a.sections, err = section.New(section.Config{
		Mapping: p.Mapping, Holder: a.holder, Lease: p.Lease, Losses: p.Losses, StoreTime: p.StoreTime, StoresFull: p.StoresFull, Guide: guide{a},
		Lost: func() { a.owner.Seek() }, Record: a.recordRaise, UIDMemory: p.UIDMemory,
		Clock: p.Clock, Wall: p.Wall, Logger: p.Logger, Traces: p.Traces,
	})
	if err != nil {
		return nil, err
	}
	a.nodes = nodes.New(nodes.Config{Self: quorum.SessionView{Session: a.session, Name: p.Name, Addr: p.Addr},
		Sessions: func() []quorum.SessionView { return a.leases.Sessions() }, Lease: p.Lease, Clock: p.Clock})
	a.routes = arbiter.NewRoutes(arbiter.RoutesConfig{Name: p.Name, Session: a.session, Mapping: p.Mapping, Documents: p.Documents,
		Heard: func() uint64 { return a.leases.RouteVersion() }, Clock: p.Clock, Wall: p.Wall, Logger: p.Logger})
	a.arbiterLease = arbiter.NewLease(a.holder, p.Logger)
	a.arbiter = arbiter.New(arbiter.Config{Name: p.Name, Weight: p.Weight, Zone: p.Zone, Expect: p.ExpectAllocs, Sections: a.sections.Len,
		Routes: a.routes, Lease: a.arbiterLease, Term: p.Lease, Present: a.nodes.Present, Awaited: a.nodes.Awaited,
		Leaving: func() bool { return a.owner.Leaving() }, Clock: p.Clock, Logger: p.Logger})
	a.sets = setdocs.New(setdocs.Config{Life: context.Background(), Stores: p.Documents, Session: a.session, First: p.First, Root: p.Root,
		OnRecord: func(sets.Record) { a.owner.Seek() }, Logger: p.Logger})
	a.owner = owner.New(owner.Config{
		Name: p.Name, Cluster: p.Cluster, Secret: p.Secret, Lease: p.Lease, Sections: a.sections, Holder: a.holder,
		Sessions: p.Leases, Nodes: a.nodes, Routes: a.routes, Arbiter: a.arbiter, ArbiterLease: a.arbiterLease, Peers: p.Peers, Record: a.sets, Keys: a.keyHashers,
		Fail: a.fail, Clock: p.Clock, Logger: p.Logger, Traces: p.Traces,
	})
	a.routes.OnChange(a.owner.Look)
	return a, nil
}

// keyHashers are how string keys are hashed: of a space, the same for the life of the Alloc.
func (a *Alloc) keyHashers() seq.KeyHashers { return *a.keys.Load() }

// extend goes over to a mapping with spaces added, the string keys of which are hashed by keys.
// Those come first: a space that is known is served at once.
func (a *Alloc) extend(m seq.Mapping, keys seq.KeyHashers) error {
	a.keys.Store(&keys)
	if err := a.sections.Extend(m); err != nil {
		return err
	}
	a.owner.Seek()
	a.arbiter.Look()
	return nil
}

// Run gains, keeps and gives sections until ctx ends or an invariant is broken.
// It does not hand anything over at its end: owner.Owner.Leave does.
func (a *Alloc) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for _, run := range []func(context.Context){a.sections.Run, a.routes.Follow, a.record, a.owner.Run, a.arbiter.Run, a.sets.Run} {
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

// sessionsChanged: those that wait for another's lease look again.
func (a *Alloc) sessionsChanged() {
	a.owner.Seek()
	a.arbiter.Look()
}

// lost is called for a register that a store says is another session's.
func (a *Alloc) lost(reg seq.Register, round uint64) {
	epoch := seq.Epoch{Round: round, Session: a.session}
	if id, ok := reg.Section(); ok {
		a.sections.Lose(id, epoch)
	} else if reg == seq.ArbiterRegister {
		a.arbiterLease.Lost(epoch)
	}
}

// recordRaise writes to the log of events what a forced raise is about to do.
func (a *Alloc) recordRaise(ctx context.Context, id seq.SectionID, key seq.Counter, from, to uint64) error {
	return a.routes.Record(ctx, []arbiter.Event{{Kind: "raise", Subject: fmt.Sprintf("section %d", id),
		Reason: fmt.Sprintf("%s: %s forced, ceiling from %d to %d", rpc.ChangeBy(ctx), key, from, to)}})
}

// mine says whether this node should own the section, from memory; if not, the
// error says which node should.
func (a *Alloc) mine(id seq.SectionID) (bool, error) {
	record := a.sets.Known()
	switch c := a.sections.Section(id); {
	case !record.IsRoot():
		return false, guide{a}.atRoot(id, record)
	case !record.Has(id): // tags stay with the root, wherever their sections go
		if t := a.routes.Table(); a.given(t, id) {
			return true, nil
		}
	case c.State() == section.Owned || c.State() == section.Acquiring:
		return true, nil
	default:
		return false, guide{a}.NotOwner(id, c.Successor())
	}
	return false, guide{a}.byTable(id, "")
}

// desired counts the sections that the table gives to this node, and that its Set has.
func (a *Alloc) desired(t *arbiter.Table) (n int) {
	if t == nil {
		return 0
	}
	record := a.sets.Known()
	for id := range t.Sections {
		if record.Has(seq.SectionID(id)) && a.given(t, seq.SectionID(id)) {
			n++
		}
	}
	return n
}

// given says whether the table gives the section to this node.
func (a *Alloc) given(t *arbiter.Table, id seq.SectionID) bool {
	owner, ok := t.Owner(id)
	return ok && owner.Name == a.name
}

// Ready is nil while this node has a route table, reaches a quorum, serves what it owns and
// has taken what the table gives to it and no other has; else the reason why not. Sections
// on their way from one node to another make neither of them less ready.
func (a *Alloc) Ready() error {
	if a.owner.Leaving() {
		return seq.ErrShuttingDown
	}
	t := a.routes.Table()
	if t == nil {
		return fmt.Errorf("%w: no route table yet", seq.ErrNoRoute)
	}
	if err := a.quorum(); err != nil {
		return err
	}
	record := a.sets.Known()
	have, lapsed, missing := a.sections.Standing(func(id seq.SectionID) bool { return record.Has(id) && a.given(t, id) })
	switch {
	case lapsed > 0:
		loss := a.quorum()
		if loss == nil {
			loss = seq.ErrNoLease
		}
		return fmt.Errorf("%w: %d of %d sections served", loss, have-lapsed, have)
	case missing > 0:
		return fmt.Errorf("%w: %d of %d still to go", errTaking, missing, a.desired(t))
	}
	return nil
}

// send gives the metrics of sections and of what the node knows of the cluster.
func (a *Alloc) send(ch chan<- prometheus.Metric) {
	a.sections.Send(ch)
	mTakeovers.Send(ch, float64(a.owner.Takeovers()))
	mHandoffs.Send(ch, float64(a.owner.Handoffs()))
	mStores.Send(ch, float64(a.replicas.Load()), "all")
	mStores.Send(ch, float64(a.needed.Load()), "needed")
	mStores.Send(ch, float64(a.leases.Connected()), "answering")
	live, dead := 0, 0
	for _, v := range a.leases.Sessions() {
		if v.Dead {
			dead++
		} else {
			live++
		}
	}
	mSessions.Send(ch, float64(live), "live")
	mSessions.Send(ch, float64(dead), "dead")
	t := a.routes.Table()
	mTable.Send(ch, float64(t.Version()))
	mFrozen.Flag(ch, t != nil && t.Frozen != "")
	if t != nil {
		mTogether.Send(ch, float64(t.Together()))
	}
	mArbiter.Flag(ch, a.arbiterLease.Held(a.clock.Now()))
	mDesired.Send(ch, float64(a.desired(t)))
	a.sendSets(ch)
}

// guide is an Alloc as the table of sections asks it: section.Redirector.
type guide struct{ *Alloc }

// Quorum implements section.Redirector.
func (g guide) Quorum() error { return g.quorum() }

// FailFast implements section.Redirector. A node that leaves ends its session itself, and tells
// which node has its sections: that is no lost quorum.
func (g guide) FailFast() error {
	if g.owner.Leaving() {
		return nil
	}
	return g.quorum()
}

// NotOwner implements section.Redirector: an rpc.NotOwnerError, or that this node has no quorum.
func (g guide) NotOwner(id seq.SectionID, successor string) error {
	if err := g.FailFast(); err != nil {
		return err
	}
	switch record := g.sets.Known(); record.At(id).State {
	case sets.Active:
	case sets.Sealed:
		if addr := g.owner.Moves().SentOn(id); addr != "" {
			return g.elsewhere(id, record, addr)
		}
	default:
		return g.elsewhere(id, record, successor)
	}
	return g.byTable(id, successor)
}

// elsewhere says which other Set has the section, as far as this node knows.
func (g guide) elsewhere(id seq.SectionID, record sets.Record, successor string) error {
	place := record.At(id)
	if place.State == sets.Limbo {
		return fmt.Errorf("%w: section %d is in limbo since Set %s was restored: see seqctl set settle", seq.ErrNoRoute, id, record.SetName())
	}
	err := &rpc.NotOwnerError{Section: id, Addr: successor, Set: place.To}
	all := g.sets.Map()
	if i := all.Index(id); err.Set == "" && i < len(all.Sets) && all.Sets[i].Name != record.SetName() {
		err.Set = all.Sets[i].Name
	}
	if s, unknown := all.Set(err.Set); unknown == nil && err.Addr == "" {
		err.Addr = anyOf(s.Addrs)
	}
	if err.Addr == "" && !record.IsRoot() { // the root knows
		err.Addr = anyOf(record.Root)
		if err.Set == "" {
			err.Set = sets.RootName
		}
	}
	return err
}

// atRoot says that the root Set alone has something.
func (g guide) atRoot(id seq.SectionID, record sets.Record) error {
	err := &rpc.NotOwnerError{Section: id, Addr: anyOf(record.Root), Set: sets.RootName}
	if all := g.sets.Map(); len(all.Sets) > 0 {
		err.Set = all.Sets[0].Name
	}
	return err
}

// anyOf is one of the addresses, empty if there is none.
func anyOf(addrs []string) string {
	if len(addrs) == 0 {
		return ""
	}
	return addrs[rand.IntN(len(addrs))]
}

// byTable says which node of this Set the table gives the section to.
func (g guide) byTable(id seq.SectionID, successor string) error {
	table := g.routes.Table()
	err := &rpc.NotOwnerError{Section: id, RouteVersion: table.Version(), Addr: successor}
	if successor != "" {
		return err
	}
	if node, ok := table.Owner(id); ok && node.Name != g.name {
		err.Owner, err.Addr = node.Name, g.nodes.Addr(node)
	}
	if g.owner.Leaving() && err.Addr == "" {
		return errors.Join(seq.ErrShuttingDown, err)
	}
	return err
}

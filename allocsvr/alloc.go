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
	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/allocsvr/nodes"
	"github.com/seqsvr/seqsvr/allocsvr/owner"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Leases keeps this session alive at the replicas, and knows the other sessions.
type Leases interface {
	ownership.Leases
	Sessions() []quorum.SessionView
	RouteVersion() uint64
	// Kick renews at once.
	Kick()
	// Connected returns the number of replicas that answered within the lease.
	Connected() int
}

// keeper makes quorum.Leases a Leases.
type keeper struct{ *quorum.Leases }

// Attach implements ownership.Leases.
func (k keeper) Attach(reg seq.Register, round uint64) ownership.Lease {
	return k.Leases.Attach(reg, round)
}

// Alloc connects the parts of a node that handle sections. It tells each part what the others need to know.
// Safe for concurrent use.
type Alloc struct {
	name     string
	session  seq.Session
	replicas atomic.Int64 // N
	needed   atomic.Int64 // W
	leases   Leases
	silent   func() []string // stores that did not answer within the lease
	clock    clock.Clock
	log      *slog.Logger

	begun        atomic.Bool // it was ready once
	sections     *section.Table
	owner        *owner.Owner
	nodes        *nodes.Nodes
	routes       *arbiter.Routes
	arbiter      *arbiter.Arbiter
	arbiterLease *arbiter.Lease
	sets         *documents.Sets
	holder       *ownership.Holder // of sections and of the arbiter's lease
	keys         atomic.Pointer[seq.KeyHashers]
	fatal        chan error      // first broken invariant
	changes      chan rpc.Change // for the log of events
}

// Parts holds the parts of an Alloc. The Server sets them, and tests replace some.
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
	// Preempting are the Registers as they ask for promises over living leases.
	Preempting ownership.Registers
	Documents  arbiter.Documents
	Leases     Leases
	First      documents.SetsAtStart // the Set's knowledge of Sets, read before the start; zero if the cluster has no other Sets
	// Root reads the map of Sets at a node of the root Set. If nil, the cluster has no other Sets.
	Root func(ctx context.Context, addr string, newerThan uint64) (sets.Map, error)
	// Losses returns the count of quorum.Leases.Losses. It moves on before any hold of Leases may be worth
	// less than it said. If nil, each hold is asked for each batch.
	Losses func() uint64
	// StoreTime returns the latest time that the clocks of W stores have reached (quorum.Leases.StoreTime).
	// If nil, the time is not known.
	StoreTime func() (time.Time, bool)
	// StoreRoom returns the memory that W stores have for more UIDs and request ids of exact spaces
	// (quorum.Leases.Room). If nil, the stores have memory.
	StoreRoom func() quorum.Room
	// Missing returns the names of the stores that did not answer within the lease, for people. If nil,
	// messages do not name them.
	Missing      func() []string
	Peers        owner.Peers
	Keys         seq.KeyHashers // hash string keys; if nil, seq.HashKey does
	UIDMemory    func() uint64  // limit on the bytes of counters; nil or zero means no limit
	Clock        clock.Clock
	Wall         func() time.Time // time.Now, or a test's
	Logger       *slog.Logger
	Traces       *tracing.Tracer // if nil, tracing is off
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
		Mapping: p.Mapping, Holder: a.holder, Lease: p.Lease, Losses: p.Losses, StoreTime: p.StoreTime, StoreRoom: p.StoreRoom, Guide: guide{a},
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
	a.sets = documents.NewSets(documents.SetsConfig{Life: context.Background(), Stores: p.Documents, Session: a.session, First: p.First, Root: p.Root,
		OnRecord: func(sets.Record) { a.owner.Seek() }, Logger: p.Logger})
	a.owner = owner.New(owner.Config{
		Name: p.Name, Cluster: p.Cluster, Secret: p.Secret, Lease: p.Lease, Sections: a.sections, Holder: a.holder,
		Preemptor: &ownership.Holder{Session: a.session, Registers: p.Preempting, Leases: p.Leases},
		Sessions:  p.Leases, Nodes: a.nodes, Routes: a.routes, Arbiter: a.arbiter, ArbiterLease: a.arbiterLease, Peers: p.Peers, Record: a.sets, Keys: a.keyHashers,
		Fail: a.fail, Clock: p.Clock, Logger: p.Logger, Traces: p.Traces,
	})
	a.routes.OnChange(a.owner.Look)
	return a, nil
}

// keyHashers returns the hashers of string keys. The hasher of a space stays for the life of the Alloc.
func (a *Alloc) keyHashers() seq.KeyHashers { return *a.keys.Load() }

// extend uses a mapping with added spaces. It sets the hashers of their string keys first, because a space
// is served as soon as it is known.
func (a *Alloc) extend(m seq.Mapping, keys seq.KeyHashers) error {
	a.keys.Store(&keys)
	if err := a.sections.Extend(m); err != nil {
		return err
	}
	a.owner.Seek()
	a.arbiter.Look()
	return nil
}

// Run acquires, keeps and hands over sections until ctx ends or an invariant is broken. At its end it hands
// nothing over, because owner.Owner.Leave does.
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

// fail stops the process because an invariant is broken.
func (a *Alloc) fail(err error) {
	select {
	case a.fatal <- err:
	default:
	}
}

// sessionsChanged wakes the acquisitions that wait for another session's lease.
func (a *Alloc) sessionsChanged() {
	a.owner.Seek()
	a.arbiter.Look()
}

// lost is called when a store says that another session has the register.
func (a *Alloc) lost(reg seq.Register, round uint64) {
	epoch := seq.Epoch{Round: round, Session: a.session}
	if id, ok := reg.Section(); ok {
		a.sections.Lose(id, epoch)
	} else if reg == seq.ArbiterRegister {
		a.arbiterLease.Lost(epoch)
	}
}

// recordRaise writes a forced raise to the log of events before the raise is done.
func (a *Alloc) recordRaise(ctx context.Context, id seq.SectionID, key seq.Counter, from, to uint64) error {
	return a.routes.Record(ctx, []arbiter.Event{{Kind: "raise", Subject: fmt.Sprintf("section %d", id),
		Reason: fmt.Sprintf("%s: %s forced, ceiling from %d to %d", rpc.ChangeBy(ctx), key, from, to)}})
}

// mine reports, from memory, whether this node should own the section. If not, the error names the node or
// Set that should.
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

// desired returns the number of sections that the table gives to this node and that its Set has.
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

// given reports whether the table gives the section to this node.
func (a *Alloc) given(t *arbiter.Table, id seq.SectionID) bool {
	owner, ok := t.Owner(id)
	return ok && owner.Name == a.name
}

// Ready returns nil if this node has a route table and a quorum and serves its sections. It must also have
// taken the sections that the table assigns to it and no other node has. Otherwise it returns the reason.
// Sections that move between nodes do not make either node less ready. At its start it must have read the copies
// of its exact sections too.
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
	have, lapsed, missing, reading := a.sections.Standing(func(id seq.SectionID) bool { return record.Has(id) && a.given(t, id) })
	switch {
	case lapsed > 0:
		loss := a.quorum()
		if loss == nil {
			loss = seq.ErrNoLease
		}
		return fmt.Errorf("%w: %d of %d sections served", loss, have-lapsed, have)
	case missing > 0:
		return fmt.Errorf("%w: %d of %d still to go", errTaking, missing, a.desired(t))
	case reading > 0 && !a.begun.Load():
		return fmt.Errorf("%w: copies of %d of %d exact sections to be read", errTaking, reading, have)
	}
	a.begun.Store(true)
	return nil
}

// send sends the metrics of sections, and of the cluster as this node sees it.
func (a *Alloc) send(ch chan<- prometheus.Metric) {
	a.sections.Send(ch)
	mTakeovers.Send(ch, float64(a.owner.Takeovers()))
	mPreempted.Send(ch, float64(a.owner.Preempted()))
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

// guide is the section.Redirector of an Alloc.
type guide struct{ *Alloc }

// Quorum implements section.Redirector.
func (g guide) Quorum() error { return g.quorum() }

// FailFast implements section.Redirector. A node that leaves ends its own session and redirects to the new
// owners, so that is no lost quorum.
func (g guide) FailFast() error {
	if g.owner.Leaving() {
		return nil
	}
	return g.quorum()
}

// NotOwner implements section.Redirector. It returns an rpc.NotOwnerError, or an error if this node has no
// quorum.
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

// elsewhere returns an error that names the Set of the section, as far as this node knows.
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

// atRoot returns an error that redirects to the root Set.
func (g guide) atRoot(id seq.SectionID, record sets.Record) error {
	err := &rpc.NotOwnerError{Section: id, Addr: anyOf(record.Root), Set: sets.RootName}
	if all := g.sets.Map(); len(all.Sets) > 0 {
		err.Set = all.Sets[0].Name
	}
	return err
}

// anyOf returns one of the addresses, or "" if there are none.
func anyOf(addrs []string) string {
	if len(addrs) == 0 {
		return ""
	}
	return addrs[rand.IntN(len(addrs))]
}

// byTable returns an error that names the node to which the table of this Set gives the section.
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

package owner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/allocsvr/nodes"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Peers calls the other AllocSvr, by session and address.
type Peers interface {
	// Offer hands the sealed sections to the session at addr. An error means
	// that the peer may or may not have them.
	Offer(ctx context.Context, addr string, to seq.Session, sections []handover.Sealed) error
	// Take lets the session acquire the offered sections. It returns the sections that the session owns
	// now.
	Take(ctx context.Context, addr string, to seq.Session, ids []seq.SectionID) (owned []seq.SectionID, err error)
}

// Record is the document of the sections that this Set has. documents.Sets keeps it.
type Record interface {
	Known() sets.Record                            // as this node has seen it
	Load(ctx context.Context) (sets.Record, error) // as it is now
	// Step takes a step with sections, unless it was taken.
	Step(ctx context.Context, s sets.Step, ranges []sets.Range) (now sets.Record, err error)
	Look() // has it read soon
}

// Sessions holds the allocators' sessions that the stores report.
type Sessions interface {
	Sessions() []quorum.SessionView
	// Kick asks the stores at once.
	Kick()
}

// Config of an Owner.
type Config struct {
	Name         string // of this node
	Cluster      string
	Secret       seq.Secret    // of its session
	Lease        time.Duration // how long the session's leases are
	Sections     *section.Table
	Holder       *ownership.Holder
	Preemptor    *ownership.Holder // Holder, whose Registers ask for promises over living leases
	Sessions     Sessions
	Nodes        *nodes.Nodes
	Routes       *arbiter.Routes
	Arbiter      *arbiter.Arbiter // told of sections that were acquired
	ArbiterLease *arbiter.Lease   // given up when the node leaves
	Peers        Peers
	Record       Record                // which sections this Set has
	Keys         func() seq.KeyHashers // if nil, seq.HashKey hashes all keys
	// Fail is called when an invariant is broken. The process must then stop.
	Fail   func(error)
	Clock  clock.Clock
	Logger *slog.Logger
	Traces *tracing.Tracer // if nil, tracing is off
}

// Owner acquires sections for a node and hands them over. Safe for concurrent use.
type Owner struct {
	name         string
	cluster      string
	secret       seq.Secret
	session      seq.Session // of secret
	lease        time.Duration
	sections     *section.Table
	holder       *ownership.Holder
	preemptor    *ownership.Holder
	sessions     Sessions
	nodes        *nodes.Nodes
	routes       *arbiter.Routes
	arbiter      *arbiter.Arbiter
	arbiterLease *arbiter.Lease
	peers        Peers
	record       Record
	moves        Moves
	keys         func() seq.KeyHashers
	fail         func(error)
	clock        clock.Clock
	log          *slog.Logger
	traces       *tracing.Tracer

	kept    handover.Kept
	seeker  *wake.Signal
	giver   *wake.Signal
	leaving atomic.Bool // no section is acquired or taken from peers any more
	// gaining is held in part by each acquisition that must not begin while the node leaves. Leave holds
	// all of it, and so waits for these acquisitions. Their counters are handed over or parked like all
	// others.
	gaining *semaphore.Weighted

	// silent are the nodes that Suspect named, with their sessions.
	silent atomic.Pointer[map[string]seq.Session]
	taken  map[seq.SectionID]preempted // of the loop of seek alone

	takeovers, preempted, handoffs atomic.Uint64
}

// New makes an Owner. It does nothing before Run.
func New(cfg Config) *Owner {
	if cfg.Keys == nil {
		cfg.Keys = func() seq.KeyHashers { return nil }
	}
	o := &Owner{
		name: cfg.Name, cluster: cfg.Cluster, secret: cfg.Secret, session: cfg.Secret.Session(), lease: cfg.Lease,
		sections: cfg.Sections, holder: cfg.Holder, preemptor: cfg.Preemptor, sessions: cfg.Sessions, nodes: cfg.Nodes, routes: cfg.Routes,
		arbiter: cfg.Arbiter, arbiterLease: cfg.ArbiterLease, peers: cfg.Peers, record: cfg.Record, keys: cfg.Keys, fail: cfg.Fail,
		clock: cfg.Clock, log: cfg.Logger, traces: cfg.Traces,
		taken: make(map[seq.SectionID]preempted), seeker: wake.New(), giver: wake.New(), gaining: semaphore.NewWeighted(gainers),
	}
	o.moves.o = o
	return o
}

// Moves returns the steps for sections that go to other Sets or come from there.
func (o *Owner) Moves() *Moves { return &o.moves }

// Run acquires and hands over sections until ctx ends. At its end it hands nothing over, because Leave
// does.
func (o *Owner) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { o.seek(ctx) })
	wg.Go(func() { (&giver{o}).run(ctx) })
	wg.Wait()
}

// Seek makes Run look at once for sections to acquire.
func (o *Owner) Seek() { o.seeker.Kick() }

// Look makes Run look at once for sections to acquire or hand over. It is called when the route table has
// changed.
func (o *Owner) Look() {
	o.seeker.Kick()
	o.giver.Kick()
}

// Leaving reports whether Leave was called.
func (o *Owner) Leaving() bool { return o.leaving.Load() }

// Takeovers returns the number of times that sections of a node that was gone were taken over.
func (o *Owner) Takeovers() uint64 { return o.takeovers.Load() }

// Handoffs returns the number of batches of sections that were handed over.
func (o *Owner) Handoffs() uint64 { return o.handoffs.Load() }

// Leave hands every section over, with its counters, to the standbys or any other live node. It seals the
// sections that no node takes, and parks their counters in file for the next start on this machine. Then it
// ends the session at the stores, so that other nodes do not wait for its lease. Call it once, before Run's
// context ends. An error tells what was not handed over. The lease then runs out by itself.
func (o *Owner) Leave(ctx context.Context, file string) error {
	ctx, span := o.traces.Rare(ctx, "alloc.leave")
	defer span.End(nil)
	o.leaving.Store(true)
	if err := o.gaining.Acquire(ctx, gainers); err == nil {
		o.gaining.Release(gainers) // what was being acquired is owned now, or was not won
	}
	g := &giver{o}
	g.tellLeaving(ctx)
	o.arbiterLease.Release(ctx)
	moved := g.handAway(ctx)
	o.sections.Close()
	parkErr := g.park(file)
	tableErr := g.tellMoved(ctx, moved)
	endErr := o.holder.End(ctx, o.secret)
	if err := errors.Join(parkErr, tableErr, endErr); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}

// Adopt makes parked counters available to later acquisitions. It returns the errors of handover.Parked.
func (o *Owner) Adopt(file string) error {
	sealed, err := handover.Parked(file, o.cluster)
	o.kept.Keep(slices.DeleteFunc(sealed, func(s handover.Sealed) bool {
		return int(s.ID) >= o.sections.Len() || s.Mark != o.mark(s.ID)
	})...)
	return err
}

// mark returns the mark of the hash that this node uses for string keys of a section's space.
func (o *Owner) mark(id seq.SectionID) uint64 {
	return o.keys()[o.sections.Section(id).Space().Name].Mark()
}

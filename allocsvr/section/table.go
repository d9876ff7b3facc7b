package section

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/logs"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/allocsvr/section/tickets"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// ErrInvariant means that one of I1 to I7 would be broken. The process must stop before it hands out
// another number.
var ErrInvariant = errors.New("invariant broken")

// Redirector answers for requests that the table cannot serve, because the answer lies outside of the
// table. Its methods are called with a section locked, so they must not call the table.
type Redirector interface {
	// Quorum returns nil while W stores have answered within the lease. Otherwise it returns a
	// seq.ErrNoQuorum that names the stores that have not.
	Quorum() error
	// FailFast returns the reason why a request neither waits for a section that is on its way nor is
	// redirected. If it returns nil, the request waits or is redirected.
	FailFast() error
	// NotOwner returns an error that says where a section is that this node does not have. The section was
	// handed to the node at the gRPC address successor, which is "" if it is not known.
	NotOwner(id seq.SectionID, successor string) error
}

// Config of a Table.
type Config struct {
	Mapping seq.Mapping
	Holder  *ownership.Holder
	Lease   time.Duration // the length of the session's leases
	// Losses returns a count that moves on before any hold may be worth less than it said. If nil, each
	// hold is asked for each batch.
	Losses func() uint64
	// StoreTime is logs.Config.StoreTime, for sections of exact spaces.
	StoreTime func() (time.Time, bool)
	// StoreRoom returns the memory that W stores have for more UIDs and ids of exact spaces
	// (quorum.Leases.Room). If nil, the stores have memory.
	StoreRoom func() quorum.Room
	Guide     Redirector
	// Lost is called when another session has acquired a section. It must not block.
	Lost func()
	// Record writes a raise that is about to be forced to the log of events.
	Record func(ctx context.Context, id seq.SectionID, key seq.Counter, from, to uint64) error
	Clock  clock.Clock
	Wall   func() time.Time
	// UIDMemory returns the limit on the bytes of counters. It may change. Zero means no limit. If nil,
	// there is no limit.
	UIDMemory func() uint64
	Logger    *slog.Logger
	Traces    *tracing.Tracer // if nil, tracing is off
}

// Table is the sections of a mapping on one node. Safe for concurrent use.
type Table struct {
	holder *ownership.Holder
	lease  time.Duration
	losses func() uint64
	guide  Redirector
	onLost func()
	record func(ctx context.Context, id seq.SectionID, key seq.Counter, from, to uint64) error
	clock  clock.Clock
	wall   func() time.Time
	log    *slog.Logger
	traces *tracing.Tracer

	cells
	stepper *ownership.Stepper[rising]
	logs    *logs.Logs  // of the sections of exact spaces
	logged  logged      // what is asked of them
	closed  atomic.Bool // no section is installed any more
	full    atomic.Bool // the stores refused the last step that came back, for want of room
	stats   stats
	memory  memory
	raises  raiseBudget
	tickets tickets.Stats
	watches watches
	reading reading
}

// New makes a Table that owns nothing. Errors: seq.ErrBadMapping.
func New(cfg Config) (*Table, error) {
	if err := cfg.Mapping.Validate(); err != nil {
		return nil, err
	}
	t := &Table{
		holder: cfg.Holder, lease: cfg.Lease, losses: cfg.Losses, guide: cfg.Guide, onLost: cfg.Lost,
		record: cfg.Record, clock: cfg.Clock, wall: cfg.Wall, log: cfg.Logger, traces: cfg.Traces,
		stats: newStats(seq.MaxSpaces),
	}
	if t.losses == nil {
		var asked atomic.Uint64
		t.losses = func() uint64 { return asked.Add(1) }
	}
	if t.memory.budget = cfg.UIDMemory; t.memory.budget == nil {
		t.memory.budget = unbounded
	}
	t.cells.start(cfg.Mapping, &t.memory)
	t.stepper = ownership.NewStepper[rising](t.holder, t.clock, t.traces)
	t.logs = logs.New(logs.Config{
		Stores: t.holder.Registers, Session: t.holder.Session, Clock: t.clock, StoreTime: cfg.StoreTime,
		Began: t.begun,
		Lost:  func(id seq.SectionID, epoch, by seq.Epoch) { t.lose(t.Section(id), epoch, by) },
		Grow:  t.memory.growLogs, Full: func(id seq.SectionID) error { return t.memory.full(t.Section(id).space, cfg.StoreRoom) },
		Logger: t.log, Traces: t.traces,
	})
	t.logged = logged{find: t.logOf, record: t.record}
	return t, nil
}

// Run raises ceilings and keeps the counters within their memory until ctx ends.
func (t *Table) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { t.folding().keepWithin(ctx) })
	wg.Go(func() { t.logs.Run(ctx) })
	wg.Go(func() { t.expire(ctx) })
	t.stepper.Run(ctx)
	wg.Wait()
}

// Close has no section installed any more. Those that are owned go on until they are
// sealed.
func (t *Table) Close() { t.closed.Store(true) }

// Install makes a section owned: STEP to confirmed was acknowledged by W stores under
// epoch, and the lease is asked for. false if the epoch was lost meanwhile, or the table is
// closed. The counters are the table's from here on. ErrInvariant.
func (t *Table) Install(id seq.SectionID, epoch seq.Epoch, table *counters.Table, confirmed uint64, hold ownership.Lease) (bool, error) {
	return t.Section(id).install(epoch, table, confirmed, hold, t)
}

// Lose forgets a section that a store says is another session's.
func (t *Table) Lose(id seq.SectionID, epoch seq.Epoch) { t.lose(t.Section(id), epoch, seq.Epoch{}) }

// lose drops a section at once: the epoch by was promised, which is higher.
func (t *Table) lose(c *Section, epoch, by seq.Epoch) {
	if !c.lose(epoch) {
		return
	}
	t.stats.nacks.Add(1)
	t.log.Debug("section lost", "section", c.id, "epoch", epoch.String(), "to", by.String())
	t.onLost()
}

// leaseLoss is why a lease is not valid.
func (t *Table) leaseLoss() error {
	if err := t.guide.Quorum(); err != nil {
		return err
	}
	return seq.ErrNoLease
}

// Owned lists the sections that this node serves, or would if its lease held.
func (t *Table) Owned() []seq.SectionID {
	var ids []seq.SectionID
	for c := range t.all() {
		if c.State() == Owned {
			ids = append(ids, c.id)
		}
	}
	return ids
}

package segment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Config holds the parts of a Service. All fields are required, except Quorum, Tell, Wall and RouteVersion.
type Config struct {
	Holder    *ownership.Holder
	Mapping   seq.Mapping
	Documents documents.Stores
	// Owner reports whether this node should own the section, by what it knows now. If not, the error is a
	// seq.ErrNotOwner that names the owner. Every Take calls Owner, so it must be fast. If two nodes both
	// return true, the only harm is that one of them waits. An rpc.NotOwnerError that names a Set is for
	// all sections, because that Set has all tags.
	Owner func(section seq.SectionID) (mine bool, err error)
	// Quorum returns nil while this node's leases can be valid, and otherwise a seq.ErrNoQuorum. If Quorum
	// is nil, errors do not say why a lease has ended.
	Quorum func() error
	// ReadPrefix reads the registers of tags; see quorum.Group.
	ReadPrefix func(ctx context.Context, session seq.Session, prefix string) (map[seq.Register]quorum.Outcome, error)
	// Tell makes the node of another session read the catalogue again. It returns when that node uses it,
	// or how long that may take at most. If nil, there is no other node.
	Tell func(ctx context.Context, session seq.Session) (later time.Duration, err error)
	// Clock is the clock of the leases.
	Clock clock.Clock
	// Wall is the clock of the dates of business numbers. If nil, it is the machine's clock.
	Wall func() time.Time
	// RouteVersion is the version of this node's route table, for replies.
	RouteVersion func() uint64
	Logger       *slog.Logger
}

func (c Config) validate() error {
	if c.Holder == nil || c.Holder.Session == 0 || c.Documents == nil || c.Owner == nil || c.Clock == nil || c.Logger == nil {
		return fmt.Errorf("%w: segment service: a part is missing", seq.ErrBadArgument)
	}
	return c.Mapping.Validate()
}

// Service serves the tags of one node. Safe for concurrent use.
type Service struct {
	cfg      Config
	life     context.Context // ends with Run
	end      context.CancelFunc
	catalog  catalog
	acquirer *acquirer
	stepper  *ownership.Stepper[rising]

	leaving atomic.Bool // set once, before the last tags are sealed
	fatal   chan error  // first broken invariant
	recheck *wake.Signal

	mu    sync.Mutex       // guards cells, not what is in them
	cells map[string]*cell // by the names of their registers

	forms sync.Map // templates of the catalogue, numbers.Format to *numbers.Template

	numbers, takes, failed atomic.Uint64 // since start
}

// New makes a Service that owns nothing yet. seq.ErrBadArgument, seq.ErrBadMapping.
func New(cfg Config) (*Service, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.RouteVersion == nil {
		cfg.RouteVersion = func() uint64 { return 0 }
	}
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	if cfg.Tell == nil {
		cfg.Tell = func(context.Context, seq.Session) (time.Duration, error) { return 0, nil }
	}
	if cfg.Quorum == nil {
		cfg.Quorum = func() error { return nil }
	}
	s := &Service{cfg: cfg, fatal: make(chan error, 1), recheck: wake.New(), cells: make(map[string]*cell)}
	s.life, s.end = context.WithCancel(context.Background())
	s.catalog = catalog{documents.New(documents.Config[tags]{Life: s.life, Stores: cfg.Documents, Session: cfg.Holder.Session,
		Register: seq.TagsRegister, Parse: parseTags, Encode: tags.encode, OnNew: s.limit}, nil)}
	s.acquirer, s.stepper = newAcquirer(s), ownership.NewStepper[rising](cfg.Holder, cfg.Clock, nil)
	return s, nil
}

// Times of Run.
const (
	sweepEvery   = 250 * time.Millisecond // looks at memory only
	refreshEvery = 4 * time.Second        // of changes that this node was not told of
	releaseBound = 3 * time.Second        // for telling the stores of a release
)

// RefreshedWithin bounds the time after which a node of an older build uses a change.
const RefreshedWithin = 5 * time.Second

// Run serves until ctx ends or an invariant is broken, which is its error. It runs once. After it nothing
// is handed out. Only Release tells the stores.
func (s *Service) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, run := range []func(context.Context){s.acquirer.run, s.stepper.Run, s.sweep, s.refresh} {
		wg.Go(func() { run(ctx) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-s.fatal:
	}
	s.leaving.Store(true)
	s.seal(anyCell)
	cancel()
	s.end()
	wg.Wait()
	return err
}

// Release gives every tag up and tells the stores, so that the next owners need not
// wait for the lease; nothing is handed out from its call on. It may be called before
// or after Run has ended, and again. An error says that the stores were not told:
// the leases then end by themselves.
func (s *Service) Release(ctx context.Context) error {
	s.leaving.Store(true)
	return s.tell(ctx, s.seal(anyCell))
}

func anyCell(*cell) bool { return true }

// seal stops the tags for which which says so; it tells which of them were owned.
func (s *Service) seal(which func(*cell) bool) (items []quorum.LeaseItem) {
	for _, c := range s.all() {
		if !which(c) {
			continue
		}
		if epoch, ok := c.seal(); ok {
			items = append(items, quorum.LeaseItem{Register: c.register, Round: epoch.Round})
		}
	}
	return items
}

// tell releases leases of tags that were sealed before. A crash before it leaves the
// leases to their end.
func (s *Service) tell(ctx context.Context, items []quorum.LeaseItem) error {
	if len(items) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, releaseBound)
	defer cancel()
	if err := s.cfg.Holder.Release(ctx, items, 0); err != nil {
		return fmt.Errorf("release %d tags: %w", len(items), err)
	}
	return nil
}

// Recheck has the owner of every tag looked at soon: the route table changed.
func (s *Service) Recheck() { s.recheck.Kick() }

// sweep gives up the tags that should be another node's by now, and those that are retired.
func (s *Service) sweep(ctx context.Context) {
	for s.recheck.Wait(ctx, sweepEvery) {
		items := s.seal(func(c *cell) bool {
			mine, _ := s.cfg.Owner(c.section)
			c.keepFresh(s.cfg.Clock.Now())
			return !mine || c.retired() || s.over(c)
		})
		s.forget()
		if err := s.tell(ctx, items); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Warn("tags given up, the stores could not be told", "error", err)
		} else if len(items) > 0 {
			s.cfg.Logger.Info("tags given up", "tags", len(items))
		}
	}
}

// refresh takes in what other nodes have put, as long as this node serves tags.
func (s *Service) refresh(ctx context.Context) {
	for idle := wake.New(); idle.Wait(ctx, refreshEvery); {
		if len(s.all()) == 0 {
			continue
		}
		if _, err := s.catalog.Read(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Debug("tags not refreshed", "error", err)
		}
	}
}

// limit gives every tag its entry in a newer catalogue.
func (s *Service) limit(t tags) {
	for _, c := range s.all() {
		if entry, ok := t[c.tag]; ok {
			c.limit(entry)
		}
	}
}

// Lost is to be called when a lease ends because a store says that the register is
// another session's. It does not block. Registers that are no tag's are passed over.
func (s *Service) Lost(reg seq.Register, round uint64) {
	if reg.Kind() != seq.KindTag {
		return
	}
	s.mu.Lock()
	c := s.cells[string(reg[1:])]
	s.mu.Unlock()
	if c != nil {
		s.lose(c, seq.Epoch{Round: round, Session: s.cfg.Holder.Session}, seq.Epoch{})
	}
}

// lose drops a tag at once: a higher epoch was promised.
func (s *Service) lose(c *cell, epoch, by seq.Epoch) {
	if c.drop(epoch) {
		s.cfg.Logger.Warn("tag lost", "tag", c.name, "epoch", epoch.String(), "to", by.String())
	}
}

func (s *Service) all() []*cell {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.cells))
}

// place is where a tag counts: in one register or, with business numbers, in one for each
// period, whose names no plain tag can have.
type place struct{ tag, period string }

// String returns the name of the register.
func (p place) String() string {
	if p.period == "" {
		return p.tag
	}
	return p.tag + "/" + p.period
}

// cell finds a tag that this node should serve, in the stores if it is not known here. All
// periods of a tag are served by one node.
func (s *Service) cell(ctx context.Context, at place) (*cell, error) {
	section := s.cfg.Mapping.SectionOfName(at.tag)
	if err := s.admit(section); err != nil {
		return nil, err
	}
	name := at.String()
	s.mu.Lock()
	c := s.cells[name]
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	entry, err := s.catalog.find(ctx, at.tag)
	if err == nil && at.period == "" {
		err = entry.plain()
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c = s.cells[name]; c == nil {
		// As it is known by now: of what comes later, limit tells the cell.
		c = newCell(s.catalog.Known()[at.tag], at, section)
		c.used = s.cfg.Clock.Now()
		s.cells[name] = c
	}
	return c, nil
}

// elsewhere returns an error that names the Set that has all tags, if this is another Set. No node would
// ever look at tags written here.
func (s *Service) elsewhere() error {
	_, err := s.cfg.Owner(0)
	var owner *rpc.NotOwnerError
	if errors.As(err, &owner) && owner.Set != "" {
		return err
	}
	return nil
}

// admit reports whether the section's tags are served here.
func (s *Service) admit(section seq.SectionID) error {
	mine, err := s.cfg.Owner(section)
	if !mine && err == nil {
		err = fmt.Errorf("section %d: %w", section, seq.ErrNotOwner)
	}
	if s.leaving.Load() {
		return errors.Join(seq.ErrShuttingDown, err)
	}
	return err
}

package etcdstore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// DefaultMaxLease is the longest lease where Config.MaxLease is 0.
const DefaultMaxLease = 30 * time.Second

// Config says where a Store finds its cluster.
type Config struct {
	KV       KV
	Prefix   string           // of all keys, such as /seqsvr
	Clock    clock.Clock      // if nil, the machine's
	Wall     func() time.Time // if nil, time.Now
	MaxLease time.Duration    // longest lease that may be requested; zero means DefaultMaxLease
	Logger   *slog.Logger     // if nil, nothing is logged
}

// Store is a cluster in etcd as one replica. Each process has one of its own; what it
// remembers between calls only spares messages. It is safe for concurrent use.
//
// Its rooms, each of which uses only those above it, and each with a lock of its own:
//
//	cluster  meta, and the way to etcd
//	watch    all live sessions, as etcd's answers show them
//	walls    the wall clocks of their processes
//	own      the sessions that speak through this Store, and what they hold
//	beats    the keys of these
//	records  the registers, as etcd's answers show them
//	rules    what becomes of a register: pure decisions on the state of the other rooms
//	writer   carries these out
type Store struct {
	maxLease time.Duration
	logger   *slog.Logger

	cluster *cluster
	watch   *watch
	walls   *walls
	own     *ownSessions
	beats   *beats
	records *records
	rules   *rules
	writer  *writer
}

var _ quorum.Store = (*Store)(nil)

// Open finds the cluster below the prefix: ErrNotInitialized, ErrRestored, ErrDamaged,
// seq.ErrBadArgument, and the errors of KV.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	k, err := newKeys(cfg.Prefix)
	if err != nil {
		return nil, err
	}
	if cfg.MaxLease == 0 {
		cfg.MaxLease = DefaultMaxLease
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.Boot()
	}
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := openCluster(ctx, cfg, k)
	if err != nil {
		return nil, fmt.Errorf("open etcd below %s: %w", cfg.Prefix, err)
	}
	s := &Store{maxLease: cfg.MaxLease, logger: cfg.Logger, cluster: c, own: newOwnSessions(cfg.Clock)}
	s.watch = newWatch(c, cfg.Clock)
	s.walls = newWalls(s.watch, cfg.Clock, cfg.Wall)
	s.beats = &beats{cluster: c, watch: s.watch, own: s.own, walls: s.walls}
	s.records = newRecords(c, s.watch, cfg.Clock)
	s.rules = &rules{cluster: c, watch: s.watch, own: s.own, clock: cfg.Clock, walls: s.walls}
	s.writer = &writer{cluster: c, own: s.own, records: s.records, rules: s.rules}
	return s, nil
}

// Identity is the cluster as StoreSvr's members tell of theirs.
func (s *Store) Identity() quorum.Identity {
	id := s.cluster.identity()
	id.MaxLease = s.maxLease
	return id
}

// Read implements quorum.Store. Its verdicts are advice; Copies is ErrNoExact.
func (s *Store) Read(ctx context.Context, req quorum.ReadRequest) (quorum.Reply, error) {
	reply, err := s.read(ctx, req)
	if err != nil {
		return quorum.Reply{}, fmt.Errorf("read: %w", err)
	}
	return reply, nil
}

func (s *Store) read(ctx context.Context, req quorum.ReadRequest) (quorum.Reply, error) {
	if err := s.cluster.admit(req.Ref); err != nil {
		return quorum.Reply{}, err
	}
	if req.Copies {
		return quorum.Reply{}, ErrNoExact
	}
	regs, byPrefix := req.Registers, len(req.Registers) == 0 && req.Prefix != ""
	var err error
	if byPrefix {
		regs, err = s.records.readPrefix(ctx, req.Prefix)
	} else {
		err = s.records.read(ctx, regs)
	}
	if err != nil {
		return quorum.Reply{}, err
	}
	reply := quorum.Reply{UUID: s.cluster.uuid(), Results: make([]quorum.Result, len(regs))}
	for i, r := range regs {
		known, _ := s.records.of(r)
		reply.Results[i] = s.rules.look(r, req.Session, req.Preempt, known)
		if byPrefix {
			reply.Results[i].Register = r
		}
	}
	return reply, nil
}

// Prepare implements quorum.Store.
func (s *Store) Prepare(ctx context.Context, req quorum.PrepareRequest) (quorum.Reply, error) {
	items := make([]*item, len(req.Items))
	for i, it := range req.Items {
		items[i] = &item{register: it.Register, rule: func(r record, _ int64) decision { return s.rules.prepare(it, req.Session, req.Preempt, r) }}
	}
	reply, err := s.ballot(ctx, req.Ref, req.Secret, &batch{who: req.Session, needs: notEnded, items: items})
	if err != nil {
		return quorum.Reply{}, fmt.Errorf("prepare: %w", err)
	}
	s.own.vacated(req, reply.Results)
	return reply, nil
}

// Step implements quorum.Store. It needs the promise of exactly the epoch. Records of exact
// sections are ErrNoExact.
func (s *Store) Step(ctx context.Context, req quorum.StepRequest) (quorum.Reply, error) {
	items := make([]*item, len(req.Items))
	for i, it := range req.Items {
		if len(it.Log) > 0 {
			return quorum.Reply{}, fmt.Errorf("step %s: %w", it.Register, ErrNoExact)
		}
		items[i] = &item{register: it.Register, rule: func(r record, life int64) decision { return s.rules.step(it, req.Session, life, r) }}
	}
	s.own.stepping(req)
	defer s.own.stepping(req)
	reply, err := s.ballot(ctx, req.Ref, req.Secret, &batch{who: req.Session, needs: asKnown, items: items})
	if err != nil {
		return quorum.Reply{}, fmt.Errorf("step: %w", err)
	}
	return reply, nil
}

// ballot makes a PREPARE or STEP.
func (s *Store) ballot(ctx context.Context, ref quorum.Ref, secret seq.Secret, b *batch) (quorum.Reply, error) {
	if err := secret.Proves(b.who); err != nil {
		return quorum.Reply{}, err
	}
	if err := s.cluster.admit(ref); err != nil {
		return quorum.Reply{}, err
	}
	if err := s.writer.write(ctx, b); err != nil {
		return quorum.Reply{}, err
	}
	reply := quorum.Reply{UUID: s.cluster.uuid(), Results: make([]quorum.Result, len(b.items))}
	for i, it := range b.items {
		reply.Results[i] = it.result
	}
	return reply, nil
}

// Observe writes a key without meaning, because the answer lists the sessions. A session that was silent
// for its lease counts as dead. A process that waits for others to go, and has no session to renew, calls
// it five times a lease.
func (s *Store) Observe(ctx context.Context) error { return s.watch.write(ctx) }

package etcdstore

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// DefaultMaxLease is the longest lease where Config.MaxLease is 0.
const DefaultMaxLease = 30 * time.Second

// Config says where a Store finds its cluster.
type Config struct {
	KV       KV
	Prefix   string // of all keys, such as /seqsvr
	Clock    clock.Clock
	Wall     func() time.Time // nil: time.Now
	MaxLease time.Duration    // longest lease that may be asked for; 0: DefaultMaxLease
	Logger   *slog.Logger     // nil: none
}

// Store is a cluster in etcd as one replica. Each process has one of its own; what it
// remembers between calls only spares messages.
type Store struct {
	cfg  Config
	keys keys
	boot uint64 // etcd's revision at Open: grows from one Store to the next

	mu       sync.Mutex // guards all below; not held over a call of KV
	meta     known
	seen     int64 // highest revision of any answer
	gone     error // why nothing is answered any more
	records  map[seq.Register]record
	sessions map[seq.Session]*own
	watch    watch
	reserved map[seq.Register]reservation
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
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{cfg: cfg, keys: k, records: map[seq.Register]record{}, sessions: map[seq.Session]*own{},
		watch: newWatch(), reserved: map[seq.Register]reservation{}}
	a, err := cfg.KV.Do(ctx, Txn{Then: []Op{get(k.meta())}})
	if err == nil {
		s.meta, err = readMeta(a)
	}
	switch {
	case err != nil:
	case s.meta.Poison != "":
		err = restored(s.meta.Poison)
	case s.meta.Making:
		err = fmt.Errorf("%w: its init was interrupted; run it again", ErrNotInitialized)
	case s.meta.Etcd != a.Cluster:
		err = restored(fmt.Sprintf("the cluster was made in the etcd cluster %x, and this is %x", s.meta.Etcd, a.Cluster))
	}
	if err != nil {
		return nil, fmt.Errorf("open etcd below %s: %w", cfg.Prefix, err)
	}
	s.seen, s.boot = a.Revision, uint64(a.Revision)
	return s, nil
}

// Identity is the cluster as StoreSvr's members tell of theirs.
func (s *Store) Identity() quorum.Identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	members := s.members()
	return quorum.Identity{
		UUID: s.meta.UUID, Name: members[0].Name, BootCount: s.boot, Ref: s.ref(), N: 1, R: 1, W: 1,
		Mapping: seq.Mapping{Spaces: s.meta.Spaces}, Members: members, Voting: s.gone == nil, State: s.state(),
		MaxLease: s.cfg.MaxLease, Commits: uint64(s.seen), Floors: s.meta.Floors,
	}
}

func (s *Store) state() string {
	if s.gone != nil {
		return s.gone.Error()
	}
	return "voting"
}

func (s *Store) members() []quorum.Member {
	return []quorum.Member{{UUID: s.meta.UUID, Name: "etcd"}}
}

// ref is what callers must carry: the member list is one for ever. The caller holds mu.
func (s *Store) ref() quorum.Ref {
	return quorum.Ref{Cluster: s.meta.Cluster, Era: s.meta.Era, Members: 1, MembersHash: quorum.MembersHash(s.members())}
}

// admit checks that the caller means this cluster.
func (s *Store) admit(ref quorum.Ref) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.ref()
	switch {
	case ref.Cluster != own.Cluster:
		return fmt.Errorf("etcd below %s: %w: it has cluster %q, the caller is of %q", s.cfg.Prefix, seq.ErrForeignCluster, own.Cluster, ref.Cluster)
	case ref != own:
		return fmt.Errorf("etcd below %s: %w: it has %+v, the caller %+v", s.cfg.Prefix, seq.ErrStaleEra, own, ref)
	}
	return s.gone
}

// do runs a transaction and takes note of its revision. An answer from before what had been
// seen when it was sent is of a store that was put back.
func (s *Store) do(ctx context.Context, t Txn) (Answer, error) {
	s.mu.Lock()
	floor, gone, etcd := s.seen, s.gone, s.meta.Etcd
	s.mu.Unlock()
	if gone != nil {
		return Answer{}, gone
	}
	a, err := s.cfg.KV.Do(ctx, t)
	switch {
	case err != nil:
		return Answer{}, err
	case a.Revision < floor:
		return Answer{}, s.poison(ctx, fmt.Sprintf("revision %d after %d", a.Revision, floor))
	case a.Cluster != etcd:
		return Answer{}, s.poison(ctx, fmt.Sprintf("etcd cluster %x in place of %x", a.Cluster, etcd))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = max(s.seen, a.Revision)
	return a, s.gone
}

// poison ends the use of the cluster, by other processes too where etcd takes the word.
func (s *Store) poison(ctx context.Context, why string) error {
	err := restored(why)
	s.mu.Lock()
	first := s.gone == nil
	if first {
		s.gone = err
	}
	m := s.meta.meta
	s.mu.Unlock()
	if !first {
		return err
	}
	s.cfg.Logger.Error("etcd was put back to an older state: nothing is written any more", "reason", why)
	there, failed := fetchMeta(ctx, s.cfg.KV, s.keys)
	if failed == nil && there.UUID == m.UUID && there.Era == m.Era && there.Poison == "" {
		there.Poison = why
		_, failed = s.cfg.KV.Do(ctx, Txn{If: []Compare{modified(s.keys.meta(), there.rev)},
			Then: []Op{put(s.keys.meta(), encode(s.keys.meta(), there.meta))}})
	}
	if failed != nil {
		s.cfg.Logger.Error("other processes were not told that etcd was put back", "error", failed)
	}
	return err
}

// unmoved is the compare that every write makes, so that a poisoned meta, or that of a later
// era, stops them all.
func (s *Store) unmoved() Compare {
	s.mu.Lock()
	defer s.mu.Unlock()
	return modified(s.keys.meta(), s.meta.rev)
}

// remeta takes in a meta that a failed compare brought, in the first result. An error says that
// nothing may be written by this Store.
func (s *Store) remeta(ctx context.Context, a Answer) error {
	now, err := readMeta(a)
	if err != nil {
		return s.poison(ctx, "the cluster's meta is gone: "+err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case now.Poison != "":
		s.gone = restored(now.Poison)
	case now.UUID != s.meta.UUID || now.Cluster != s.meta.Cluster:
		s.gone = fmt.Errorf("etcd below %s: %w: another cluster was made there", s.cfg.Prefix, seq.ErrForeignCluster)
	case now.Era != s.meta.Era:
		s.gone = fmt.Errorf("etcd below %s: %w: era %d in place of %d", s.cfg.Prefix, seq.ErrStaleEra, now.Era, s.meta.Era)
	case now.rev > s.meta.rev: // answers overtake each other
		s.meta = now
	}
	return s.gone
}

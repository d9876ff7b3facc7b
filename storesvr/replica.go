package storesvr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/internal/clock"
	"github.com/seqsvr/seqsvr/internal/tracing"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// database is where a replica commits. Commit returns the number of transactions over
// the life of the disk, after everything is fsynced; after an error the outcome is
// unknown and it is not called again. One goroutine commits.
type database interface {
	Commit(disk.Update) (commits uint64, err error)
	Free() (bytes uint64, err error)
	Close() error
}

// replica is a quorum.Store on one disk.
type replica struct {
	disk     database
	clock    clock.Clock
	wall     func() time.Time
	log      *slog.Logger
	identity disk.Identity
	key      []byte // of this disk's seals
	boots    uint64
	started  time.Duration
	nearFull atomic.Uint64 // bytes free below which writes are refused; 0: never
	stats    stats
	traces   *tracing.Tracer // of the calls that wait for a commit

	queue  chan *write
	quit   chan struct{} // closed by close
	failed chan struct{} // closed once err is set
	ended  chan struct{} // closed when the writer loop has ended
	once   sync.Once     // close

	// mu guards all below, the acceptor above all. It is held for work in memory only,
	// never over a commit, so that a lease never waits for a disk.
	mu         sync.Mutex
	acceptor   *acceptor.Acceptor
	members    disk.Members // as committed
	commits    uint64       // as committed
	distrusted string
	compared   comparison
	remembered map[string]quorum.Claim // newest of each fellow store, by uuid
	unsaved    bool                    // some of remembered is not on disk
	listed     time.Duration           // since when members is in force, at the latest
	maxLease   time.Duration
	err        error // why nothing is answered any more
}

var _ quorum.Store = (*replica)(nil)

// newReplica takes the database over and starts the writer loop. The grace starts now:
// by the lock on the database the process before has answered its last.
func newReplica(cfg Config, db database, meta disk.Meta, registers map[seq.Register]acceptor.State) (*replica, error) {
	now := cfg.Clock.Now()
	if err := stampFloors(cfg, db, &meta); err != nil {
		return nil, err
	}
	acc, err := acceptor.New(acceptor.Config{
		Registers: registers, MaxLease: cfg.MaxLease, LeaseBound: meta.LeaseBound, Start: now, Floors: meta.Floors.Floors,
	})
	if err != nil {
		return nil, err
	}
	r := &replica{
		disk: db, clock: cfg.Clock, wall: cfg.wall(), log: cfg.Logger.With("store", meta.Name),
		identity: meta.Identity, key: meta.Key, boots: meta.BootCount, started: now,
		maxLease: cfg.MaxLease, stats: newStats(), traces: cfg.Traces,
		queue: make(chan *write, maxGroup), quit: make(chan struct{}),
		failed: make(chan struct{}), ended: make(chan struct{}),
		acceptor: acc, members: meta.Members, listed: now, commits: meta.Commits, distrusted: meta.Distrusted,
		compared: newComparison(meta, now), remembered: map[string]quorum.Claim{},
	}
	for _, c := range meta.Remembered {
		r.remembered[c.Store] = c
	}
	r.nearFull.Store(cfg.NearFull)
	go r.loop()
	return r, nil
}

// close ends the loop after the commit in flight, and closes the database. Requests
// that wait end with seq.ErrShuttingDown, their outcome unknown to the caller. The
// server must have stopped: no lease is granted any more.
func (r *replica) close() error {
	var err error
	r.once.Do(func() {
		close(r.quit)
		<-r.ended
		err = errors.Join(r.recordLast(), r.disk.Close())
	})
	return err
}

// recordLast spares the next start its grace if nothing is leased now: everybody has left
// in order. A crash before the commit leaves the old bound, and so a grace that is longer
// than need be. What is remembered of fellow stores goes with it.
func (r *replica) recordLast() error {
	if r.failure() != nil {
		return nil // what is on disk is not known
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	last := disk.Update{Remembered: r.unsavedClaims()}
	last.NoLeases = r.acceptor.LeaseBound() > 0 && r.acceptor.Grace(now) == 0 && !r.acceptor.Leased(now)
	if last.Empty() && last.Remembered == nil {
		return nil
	}
	if _, err := r.disk.Commit(last); err != nil {
		return fmt.Errorf("record that nothing is leased: %w", err)
	}
	return nil
}

// ref is what callers must believe of this store. The caller holds mu.
func (r *replica) ref() quorum.Ref {
	return quorum.Ref{
		Cluster: r.identity.Cluster, Era: r.identity.Era,
		Members: r.members.Version, MembersHash: quorum.MembersHash(r.members.List),
	}
}

// state is "voting" or why the store does not. The caller holds mu.
func (r *replica) state() (voting bool, state string) {
	if voting, state = r.standing(); voting && r.comparing() {
		return false, "comparing its disk with what its fellow stores remember of it"
	}
	return voting, state
}

// standing is state but for the comparison at the start. The caller holds mu.
func (r *replica) standing() (voting bool, state string) {
	switch {
	case r.err != nil:
		return false, "failed: " + r.err.Error()
	case r.distrusted != "":
		return false, "distrusted, to be replaced: " + r.distrusted
	case r.members.Version == 0:
		return r.unlisted()
	}
	if r.members.Version > 1 {
		return r.listedAs()
	}
	return true, "voting"
}

// admit checks that the caller means this store and that it may answer. The caller
// holds mu.
func (r *replica) admit(ref quorum.Ref) error {
	if err := r.sameCluster(ref.Cluster, ref.Era); err != nil {
		return err
	}
	if voting, state := r.state(); !voting {
		if ref.Members < r.members.Version { // the caller can find out who votes now
			return fmt.Errorf("store %s: %w: %w: %s", r.identity.Name, seq.ErrStaleEra, seq.ErrNotVoting, state)
		}
		return fmt.Errorf("store %s: %w: %s", r.identity.Name, seq.ErrNotVoting, state)
	}
	return r.sameList(ref)
}

// sameList checks that the caller means this store's member list. The caller holds mu.
func (r *replica) sameList(ref quorum.Ref) error {
	if err := r.sameCluster(ref.Cluster, ref.Era); err != nil {
		return err
	}
	if own := r.ref(); ref != own {
		return fmt.Errorf("store %s: %w: it has member list %d (%016x), the caller %d (%016x)", r.identity.Name,
			seq.ErrStaleEra, own.Members, own.MembersHash, ref.Members, ref.MembersHash)
	}
	return nil
}

func (r *replica) sameCluster(cluster string, era seq.Era) error {
	switch {
	case cluster != r.identity.Cluster:
		return fmt.Errorf("store %s: %w: it is of %q, the caller of %q", r.identity.Name, seq.ErrForeignCluster, r.identity.Cluster, cluster)
	case era != r.identity.Era:
		return fmt.Errorf("store %s: %w: it is of era %d, the caller of %d", r.identity.Name, seq.ErrStaleEra, r.identity.Era, era)
	}
	return nil
}

// Read implements quorum.Store. It shows what is on disk and waits for no commit.
func (r *replica) Read(_ context.Context, req quorum.ReadRequest) (quorum.Reply, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.admit(req.Ref); err != nil {
		return quorum.Reply{}, fmt.Errorf("read: %w", err)
	}
	return quorum.Reply{UUID: r.identity.UUID, Results: r.acceptor.Read(req, r.clock.Now())}, nil
}

// Prepare implements quorum.Store.
func (r *replica) Prepare(ctx context.Context, req quorum.PrepareRequest) (quorum.Reply, error) {
	if err := req.Secret.Proves(req.Session); err != nil {
		return quorum.Reply{}, fmt.Errorf("prepare: %w", err)
	}
	var results []quorum.Result
	err := r.submit(ctx, &write{apply: func(now time.Duration, full bool, _ *disk.Update) (err error) {
		if err := r.admit(req.Ref); err != nil {
			return err
		}
		if full {
			results = allFull(len(req.Items))
			return nil
		}
		results, err = r.acceptor.Prepare(req, now)
		return err
	}})
	if err != nil {
		return quorum.Reply{}, fmt.Errorf("prepare: %w", err)
	}
	return quorum.Reply{UUID: r.identity.UUID, Results: results, Claim: r.sealed()}, nil
}

// Step implements quorum.Store.
func (r *replica) Step(ctx context.Context, req quorum.StepRequest) (quorum.Reply, error) {
	if err := req.Secret.Proves(req.Session); err != nil {
		return quorum.Reply{}, fmt.Errorf("step: %w", err)
	}
	size := 0
	for _, item := range req.Items {
		size += len(item.Payload)
	}
	var results []quorum.Result
	err := r.submit(ctx, &write{size: size, apply: func(_ time.Duration, full bool, _ *disk.Update) (err error) {
		if err := r.admit(req.Ref); err != nil {
			return err
		}
		if full {
			results = allFull(len(req.Items))
			return nil
		}
		results, err = r.acceptor.Step(req, acceptor.Limits{WorkerMax: workerMax(r.wall())})
		return err
	}})
	if err != nil {
		return quorum.Reply{}, fmt.Errorf("step: %w", err)
	}
	return quorum.Reply{UUID: r.identity.UUID, Results: results, Claim: r.sealed()}, nil
}

// WorkerAhead is how far a snowflake worker id's high-water mark may lie beyond the
// store's wall clock: enough for every window that an allocator asks for and for
// clocks that are minutes apart, and far too little to spoil a worker id for long.
const WorkerAhead = time.Hour

// workerMax is the largest high-water mark to be taken, in milliseconds since 1970.
func workerMax(now time.Time) uint64 { return uint64(max(0, now.Add(WorkerAhead).UnixMilli())) }

func allFull(n int) []quorum.Result {
	return slices.Repeat([]quorum.Result{{Verdict: quorum.VerdictFull}}, n)
}

// Renew implements quorum.Store. It waits for a commit only if the lease is longer than
// any before: were it granted first, a crash could leave a grace shorter than the lease.
func (r *replica) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {
	if err := req.Secret.Proves(req.Session); err != nil {
		return quorum.RenewReply{}, fmt.Errorf("renew: %w", err)
	}
	for {
		reply, err := r.renew(req)
		switch {
		case errors.Is(err, acceptor.ErrLeaseBound):
			if err := r.raiseBound(ctx, req.Lease); err != nil {
				return quorum.RenewReply{}, fmt.Errorf("renew for %v: %w", req.Lease, err)
			}
		case errors.Is(err, errOldDisk):
			return quorum.RenewReply{}, fmt.Errorf("renew: %w", r.recorded(err))
		default:
			return reply, err
		}
	}
}

func (r *replica) renew(req quorum.RenewRequest) (quorum.RenewReply, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// First of all: a disk that was put back may have an older member list, or be a learner's
	// once more, and whoever then brings it up to date would make a voter of it.
	if err := r.sameCluster(req.Ref.Cluster, req.Ref.Era); err != nil {
		return quorum.RenewReply{}, fmt.Errorf("renew: %w", err)
	}
	if r.distrusted == "" {
		if old := r.compare(req.Nonce, req.Seen); old != nil {
			return quorum.RenewReply{}, r.distrust(old)
		}
	}
	r.remember(req.Fellows)
	if would, _ := r.standing(); would && r.comparing() {
		if err := r.sameList(req.Ref); err != nil {
			return quorum.RenewReply{}, fmt.Errorf("renew: %w", err)
		}
		return r.aboutDisk(quorum.RenewReply{Nonce: r.compared.nonce}), nil
	}
	if err := r.admit(req.Ref); err != nil {
		return quorum.RenewReply{}, fmt.Errorf("renew: %w", err)
	}
	reply, err := r.acceptor.Renew(req, r.clock.Now())
	if err != nil {
		return quorum.RenewReply{}, err
	}
	return r.aboutDisk(reply), nil
}

// aboutDisk fills in what a reply says of this store's disk and of those of its fellows.
// The caller holds mu.
func (r *replica) aboutDisk(reply quorum.RenewReply) quorum.RenewReply {
	c := r.claim()
	reply.UUID, reply.BootCount, reply.Commits, reply.Seal, reply.Remembered = c.Store, c.Boot, c.Commits, c.Seal, r.recollection()
	return reply
}

func (r *replica) raiseBound(ctx context.Context, bound time.Duration) error {
	return r.submit(ctx, &write{
		apply: func(_ time.Duration, full bool, u *disk.Update) error {
			if full {
				return fmt.Errorf("raise the lease bound: %w", seq.ErrStoreFull)
			}
			u.LeaseBound = max(u.LeaseBound, bound, r.acceptor.LeaseBound())
			return nil
		},
		committed: func() { r.acceptor.SetLeaseBound(bound) },
	})
}

// Release implements quorum.Store.
func (r *replica) Release(_ context.Context, req quorum.ReleaseRequest) (uuid string, err error) {
	uuid, _, err = r.release(req)
	return uuid, err
}

func (r *replica) release(req quorum.ReleaseRequest) (uuid string, released int, err error) {
	if err := req.Secret.Proves(req.Session); err != nil {
		return "", 0, fmt.Errorf("release: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.admit(req.Ref); err != nil {
		return "", 0, fmt.Errorf("release: %w", err)
	}
	released, err = r.acceptor.Release(req, r.clock.Now())
	return r.identity.UUID, released, err
}

package storesvr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// replica is a quorum.Store on one disk.
type replica struct {
	core    *core
	writer  *writer
	change  change
	started time.Duration
}

var _ quorum.Store = (*replica)(nil)

// newReplica takes the database over and starts the writer. The grace starts now: by the
// lock on the database the process before has answered its last.
func newReplica(cfg Config, db Database, meta disk.Meta, registers map[seq.Register]acceptor.State) (*replica, error) {
	started := cfg.Clock.Now()
	if err := stampFloors(cfg, db, &meta); err != nil {
		return nil, err
	}
	if err := requireUsed(cfg, db, &meta, registers); err != nil {
		return nil, err
	}
	c, err := newCore(cfg, db.Copy, meta, registers, started)
	if err != nil {
		return nil, err
	}
	w := newWriter(cfg, db, c)
	return &replica{core: c, writer: w, change: change{core: c, writer: w}, started: started}, nil
}

func (r *replica) close() error { return r.writer.close() }

// Read implements quorum.Store. It shows what is on disk and waits for no commit; copies do.
func (r *replica) Read(ctx context.Context, req quorum.ReadRequest) (quorum.Reply, error) {
	if req.Copies {
		return r.readCopies(ctx, req)
	}
	r.core.mu.Lock()
	defer r.core.mu.Unlock()
	if err := r.core.admit(req.Ref); err != nil {
		return quorum.Reply{}, fmt.Errorf("read: %w", err)
	}
	return quorum.Reply{UUID: r.core.identity.UUID, Results: r.core.acceptor.Read(req, r.core.clock.Now())}, nil
}

// Prepare implements quorum.Store.
func (r *replica) Prepare(ctx context.Context, req quorum.PrepareRequest) (quorum.Reply, error) {
	if err := req.Secret.Proves(req.Session); err != nil {
		return quorum.Reply{}, fmt.Errorf("prepare: %w", err)
	}
	one := r.write(ctx, caller{req.Ref, req.Session, req.Secret.Node}, len(req.Items), 0, func(now time.Duration) ([]quorum.Result, error) {
		return r.core.acceptor.Prepare(req, now)
	})
	reply, err := r.written(ctx, one)
	if err != nil {
		return quorum.Reply{}, fmt.Errorf("prepare: %w", err)
	}
	return reply, nil
}

// Step implements quorum.Store.
func (r *replica) Step(ctx context.Context, req quorum.StepRequest) (quorum.Reply, error) {
	if err := req.Secret.Proves(req.Session); err != nil {
		return quorum.Reply{}, fmt.Errorf("step: %w", err)
	}
	reply, err := r.written(ctx, r.stepping(ctx, req))
	if err != nil {
		return quorum.Reply{}, fmt.Errorf("step: %w", err)
	}
	return reply, nil
}

// stepping is the write of a Step whose secret was proven.
func (r *replica) stepping(ctx context.Context, req quorum.StepRequest) *write {
	size := 0
	for _, item := range req.Items {
		size += len(item.Payload) + len(item.Log)
	}
	return r.write(ctx, caller{req.Ref, req.Session, req.Secret.Node}, len(req.Items), size, func(time.Duration) ([]quorum.Result, error) {
		return r.core.acceptor.Step(req, limitsAt(r.core.wall()))
	})
}

// caller is the session that asks for a write, as far as the request says.
type caller struct {
	ref     quorum.Ref
	session seq.Session
	node    string // empty if the request does not name it
}

// write is one that has do change registers as far as the disk has room. size is as in write.
func (r *replica) write(ctx context.Context, by caller, items, size int, do func(now time.Duration) ([]quorum.Result, error)) *write {
	one := &write{size: size}
	one.apply = func(now time.Duration, full bool, _ *disk.Update) (err error) {
		if err := r.core.admit(by.ref); err != nil {
			return err
		}
		if err := r.core.fits(ctx, by.session, by.node); err != nil {
			return err
		}
		if full {
			one.results = slices.Repeat([]quorum.Result{{Verdict: quorum.VerdictFull}}, items)
			return nil
		}
		one.results, err = do(now)
		return err
	}
	return one
}

// written answers once the write is on disk.
func (r *replica) written(ctx context.Context, one *write) (quorum.Reply, error) {
	if err := r.writer.submit(ctx, one); err != nil {
		return quorum.Reply{}, err
	}
	return quorum.Reply{UUID: r.core.identity.UUID, Results: one.results, Claim: r.core.claim()}, nil
}

// WorkerAhead bounds the high-water mark of a snowflake worker id beyond the store's wall clock.
const WorkerAhead = quorum.WorkerAhead

// LogAhead bounds the time of a record beyond the store's wall clock. The time of a section never
// falls, so a record far ahead would make the section forget its ids too early.
const LogAhead = 10 * time.Second

// limitsAt returns the limits at a time.
func limitsAt(now time.Time) acceptor.Limits {
	return acceptor.Limits{WorkerMax: workerMax(now), Latest: now.Add(LogAhead).UnixMilli()}
}

// workerMax is the largest high-water mark to be taken, in milliseconds since 1970.
func workerMax(now time.Time) uint64 { return uint64(max(1, now.Add(WorkerAhead).UnixMilli())) }

// Renew implements quorum.Store. It waits for a commit only if the lease is longer than
// any before: were it granted first, a crash could leave a grace shorter than the lease.
func (r *replica) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {
	if err := req.Secret.Proves(req.Session); err != nil {
		return quorum.RenewReply{}, fmt.Errorf("renew: %w", err)
	}
	if of := req.Secret.Node; of != "" && of != req.Name {
		return quorum.RenewReply{}, fmt.Errorf("renew: %w: session %s is of node %q, not of %q", seq.ErrNotSession, req.Session, of, req.Name)
	}
	for {
		reply, err := r.renew(ctx, req)
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

func (r *replica) renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {
	c := r.core
	c.mu.Lock()
	defer c.mu.Unlock()
	// First of all: a disk that was put back may have an older member list, or be a learner's
	// once more, and whoever then brings it up to date would make a voter of it.
	if err := c.members.sameCluster(req.Ref.Cluster, req.Ref.Era); err != nil {
		return quorum.RenewReply{}, fmt.Errorf("renew: %w", err)
	}
	if err := c.hear(req.Nonce, req.Seen); err != nil {
		return quorum.RenewReply{}, err
	}
	c.witness.remember(req.Fellows)
	if would, _ := c.standing(); would && c.witness.comparing(c.clock.Now()) {
		if err := c.members.sameList(req.Ref); err != nil {
			return quorum.RenewReply{}, fmt.Errorf("renew: %w", err)
		}
		return c.witness.about(quorum.RenewReply{Nonce: c.witness.nonce}, c.clock.Now()), nil
	}
	if err := c.admit(req.Ref); err != nil {
		return quorum.RenewReply{}, fmt.Errorf("renew: %w", err)
	}
	if err := c.fits(ctx, req.Session, req.Name); err != nil {
		return quorum.RenewReply{}, fmt.Errorf("renew: %w", err)
	}
	reply, err := c.acceptor.Renew(req, c.clock.Now())
	if err != nil {
		return quorum.RenewReply{}, err
	}
	room := c.exactRoom()
	reply.Time, reply.Full, reply.Left, reply.Limit = c.wall().UnixMilli(), room.full(), room.left(), room.most
	c.gate.renewed(ctx, req.Session, reply.Sessions)
	return c.witness.about(reply, c.clock.Now()), nil
}

func (r *replica) raiseBound(ctx context.Context, bound time.Duration) error {
	return r.writer.submit(ctx, &write{
		apply: func(_ time.Duration, full bool, u *disk.Update) error {
			if full {
				return fmt.Errorf("raise the lease bound: %w", seq.ErrStoreFull)
			}
			u.LeaseBound = max(u.LeaseBound, bound, r.core.acceptor.LeaseBound())
			return nil
		},
		committed: func() { r.core.acceptor.SetLeaseBound(bound) },
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
	r.core.mu.Lock()
	defer r.core.mu.Unlock()
	if err := r.core.admit(req.Ref); err != nil {
		return "", 0, fmt.Errorf("release: %w", err)
	}
	released, err = r.core.acceptor.Release(req, r.core.clock.Now())
	return r.core.identity.UUID, released, err
}

// vouch compares the claims of fellow stores about this store with its disk, so that the store may
// vote before its wait is over. It records that a disk is old. nonce identifies the start for which
// the claims were requested. Errors: seq.ErrForeignCluster, seq.ErrNotVoting for an old disk.
func (r *replica) vouch(cluster string, nonce uint64, claims []quorum.Claim) error {
	return r.recorded(r.core.vouch(cluster, nonce, claims))
}

// recorded makes the distrust last beyond this process that err tells of, if it does, and
// returns err. It does not end with the request that gave the proof.
func (r *replica) recorded(err error) error {
	if !errors.Is(err, errOldDisk) {
		return err
	}
	// Whether or not the mark gets to the disk, this process votes no more.
	failed := r.writer.submit(context.Background(), &write{apply: func(_ time.Duration, _ bool, u *disk.Update) error {
		u.Distrusted = r.core.witness.distrusted
		return nil
	}})
	if failed != nil {
		r.core.log.Error("cannot record that the disk is old", "error", failed)
	}
	return err
}

// dumpStep is the number of registers copied at a time, so that a lease waits for no more than these.
const dumpStep = 4096

// dump hands all registers to give, as they are on disk, in the order of their names.
// ref, if not zero, must be the store's. A section of an exact space has its copy as payload, as
// RegisterState says. Registers are looked at one after the other:
// what was on disk before dump began is in it.
func (r *replica) dump(ctx context.Context, ref quorum.Ref, give func([]quorum.RegisterState) error) error {
	for after := seq.Register(""); ; {
		r.core.mu.Lock()
		err := r.core.err
		if err == nil && ref != (quorum.Ref{}) {
			err = r.core.members.sameList(ref)
		}
		var states []quorum.RegisterState
		mapping := r.core.mapping
		if err == nil {
			states = r.core.acceptor.Dump(after, dumpStep)
		}
		r.core.mu.Unlock()
		if err != nil {
			return fmt.Errorf("dump: %w", err)
		}
		if len(states) == 0 {
			return nil
		}
		after = states[len(states)-1].Register
		if err := r.withCopies(ctx, mapping, states, give); err != nil {
			return err
		}
	}
}

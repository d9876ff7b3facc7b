package storesvr

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// errOldDisk goes with seq.ErrNotVoting when more commits of this disk are remembered than
// there are.
var errOldDisk = errors.New("the disk is older than it was")

// core is what a store has in memory, and whether it may answer from it. The writer, the
// replica and change share it.
type core struct {
	identity disk.Identity
	zone     string
	clock    clock.Clock
	wall     func() time.Time
	log      *slog.Logger

	// mu guards all below, the acceptor above all. It is held for work in memory only,
	// never over a commit, so that a lease never waits for a disk.
	mu       sync.Mutex
	acceptor *acceptor.Acceptor
	members  members
	mapping  seq.Mapping // as committed; identity.Mapping is the mapping at the start
	witness  witness
	gate     requirement
	maxLease time.Duration
	memory   uint64 // Config.Memory
	err      error  // why nothing is answered any more
}

// newCore begins the grace and the wait for fellow stores now.
func newCore(cfg Config, copies func(seq.SectionID) *exact.Copy, meta disk.Meta, registers map[seq.Register]acceptor.State, now time.Duration) (*core, error) {
	c := &core{
		identity: meta.Identity, zone: cmp.Or(cfg.Zone, meta.Zone), mapping: meta.Mapping, clock: cfg.Clock, wall: cfg.wall(), log: cfg.Logger.With("store", meta.Name),
		maxLease: cfg.MaxLease, memory: cfg.Memory, members: members{Members: meta.Members, self: meta.Identity, since: now, life: lifeOf(meta)},
		gate: newRequirement(meta),
	}
	var err error
	c.acceptor, err = acceptor.New(acceptor.Config{
		Registers: registers, MaxLease: cfg.MaxLease, LeaseBound: meta.LeaseBound, Start: now, Floors: meta.Floors.Floors, Copies: copies,
		Space: func(id seq.SectionID) (*seq.Space, error) { return c.mapping.SpaceOf(id) }, OfBefore: c.gate.ofBefore,
	})
	if err != nil {
		return nil, err
	}
	c.witness = newWitness(meta, &c.members, now)
	return c, nil
}

// state is "voting" or why the store does not. The caller holds mu.
func (c *core) state() (voting bool, state string) {
	if voting, state = c.standing(); voting && c.witness.comparing(c.clock.Now()) {
		return false, "comparing its disk with what its fellow stores remember of it"
	}
	return voting, state
}

// standing returns the state without the comparison at the start. The caller holds mu.
func (c *core) standing() (voting bool, state string) {
	switch {
	case c.err != nil:
		return false, "failed: " + c.err.Error()
	case c.witness.distrusted != "":
		return false, "distrusted, to be replaced: " + c.witness.distrusted
	}
	return c.members.standing()
}

// admit checks that the caller means this store and that it may answer. The caller
// holds mu.
func (c *core) admit(ref quorum.Ref) error {
	if err := c.members.sameCluster(ref.Cluster, ref.Era); err != nil {
		return err
	}
	if voting, state := c.state(); !voting {
		if ref.Members < c.members.Version { // the caller can find out who votes now
			return fmt.Errorf("store %s: %w: %w: %s", c.identity.Name, seq.ErrStaleEra, seq.ErrNotVoting, state)
		}
		return fmt.Errorf("store %s: %w: %s", c.identity.Name, seq.ErrNotVoting, state)
	}
	return c.members.sameList(ref)
}

// claim is what others may remember of this disk by now.
func (c *core) claim() quorum.Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.witness.claim(c.clock.Now())
}

// hear takes in what is remembered of this store's disk; nonce is of the start for which
// that was asked. An old disk is errOldDisk. The caller holds mu.
func (c *core) hear(nonce uint64, claims []quorum.Claim) error {
	if c.witness.distrusted != "" {
		return nil
	}
	if old := c.witness.compare(nonce, claims); old != nil {
		return c.distrust(old)
	}
	return nil
}

// vouch is hear of claims about this cluster.
func (c *core) vouch(cluster string, nonce uint64, claims []quorum.Claim) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.members.sameCluster(cluster, c.identity.Era); err != nil {
		return err
	}
	return c.hear(nonce, claims)
}

// distrust stops the votes of this store: its disk is a copy put back, and what it
// promised since the copy was made is gone. The caller holds mu.
func (c *core) distrust(why error) error {
	c.witness.distrusted = why.Error()
	c.log.Error("store stops voting until it is replaced", "reason", why)
	return fmt.Errorf("store %s: %w: %w: %w", c.identity.Name, seq.ErrNotVoting, errOldDisk, why)
}

// apply applies a group of writes in memory and returns what is to be committed. An error
// says that the process must not go on.
func (c *core) apply(group []*write, full bool) (disk.Update, []exact.Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var update disk.Update
	now := c.clock.Now()
	for _, w := range group {
		if w.err = w.begins(); w.err != nil {
			continue // the caller has left
		}
		w.err = w.apply(now, full, &update)
		if errors.Is(w.err, acceptor.ErrInvariant) {
			return disk.Update{}, nil, fmt.Errorf("%w: %w", ErrCommit, w.err)
		}
	}
	update.Changes = c.acceptor.Changes()
	c.gate.using(&update)
	entries := c.acceptor.Entries()
	// Under a load of exact spaces alone registers hardly change, and what is remembered of
	// fellow stores must not wait for that.
	if !update.Empty() || len(entries) > 0 {
		update.Remembered = c.witness.unsavedClaims()
	}
	return update, entries, nil
}

// committed says that what apply returned for the group is on disk. commits and batches are 0
// where there was nothing for it.
func (c *core) committed(group []*write, commits, batches uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acceptor.Committed()
	c.witness.committed(commits, batches)
	c.gate.required = max(c.gate.required, c.gate.coming)
	for _, w := range group {
		if w.err == nil && w.committed != nil {
			w.committed()
		}
	}
}

// last returns the update that an orderly stop commits. If nothing is leased, all sessions have
// left in order, and the next start needs no grace. A crash before the commit leaves the old bound,
// and so a longer grace than necessary. The update also saves what the store remembers of the disks
// of other stores.
func (c *core) last() disk.Update {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return disk.Update{} // what is on disk is not known
	}
	now := c.clock.Now()
	last := disk.Update{Remembered: c.witness.unsavedClaims()}
	last.NoLeases = c.acceptor.LeaseBound() > 0 && c.acceptor.Grace(now) == 0 && !c.acceptor.Leased(now)
	return last
}

// fail makes the store answer nothing any more, not even leases.
func (c *core) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func (c *core) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

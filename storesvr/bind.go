package storesvr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// errOldDisk goes with seq.ErrNotVoting when more commits of this disk are remembered than
// there are.
var errOldDisk = errors.New("the disk is older than it was")

// bind records the fellow members, once for the life of the disk: so a disk made anew
// under the old name, with another uuid, never passes for the old one. The same list
// again is fine; another one is seq.ErrStaleEra; one that does not fit what init was
// told is seq.ErrBadArgument. Durable when it returns nil.
func (r *replica) bind(ctx context.Context, cluster string, era seq.Era, members []quorum.Member) error {
	sorted := slices.SortedFunc(slices.Values(members), func(a, b quorum.Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UUID, b.UUID))
	})
	var bound *disk.Members
	err := r.submit(ctx, &write{
		apply: func(_ time.Duration, full bool, u *disk.Update) error {
			if err := r.sameCluster(cluster, era); err != nil {
				return err
			}
			if err := r.fits(sorted); err != nil {
				return err
			}
			before := r.members
			if u.Members != nil { // by another request of the same group
				before = *u.Members
			}
			switch {
			case r.identity.Learner:
				return fmt.Errorf("%w: it was made to be filled by a cluster: seqctl store replace or add", seq.ErrBadArgument)
			case before.Version > 0 && !slices.Equal(before.List, sorted):
				return fmt.Errorf("%w: already bound to %v", seq.ErrStaleEra, before.List)
			case before.Version == 0 && full:
				return seq.ErrStoreFull
			case before.Version == 0:
				u.Members = &disk.Members{Version: 1, List: sorted}
				bound = u.Members
			}
			return nil
		},
		committed: func() {
			if bound != nil {
				r.members = *bound
				// Without fellows there is nothing to be asked, and before this no vote.
				r.compared.done = r.compared.done || len(bound.List) == 1
				r.log.Info("bound to its fellow members", "members", bound.List)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("bind store %s: %w", r.identity.Name, err)
	}
	return nil
}

// fits checks a member list, sorted by name, against what init was told.
func (r *replica) fits(members []quorum.Member) error {
	names, uuids := make([]string, len(members)), make([]string, len(members))
	for i, m := range members {
		names[i], uuids[i] = m.Name, m.UUID
	}
	slices.Sort(uuids)
	switch {
	case !slices.Equal(names, slices.Sorted(slices.Values(r.identity.Names))):
		return fmt.Errorf("%w: members %q, init was told %q", seq.ErrBadArgument, names, r.identity.Names)
	case slices.Contains(uuids, "") || len(slices.Compact(uuids)) != len(members):
		return fmt.Errorf("%w: a member uuid empty or twice in %q", seq.ErrBadArgument, uuids)
	case !slices.Contains(members, quorum.Member{UUID: r.identity.UUID, Name: r.identity.Name}):
		return fmt.Errorf("%w: this store, %s %s, is not among %v", seq.ErrBadArgument, r.identity.Name, r.identity.UUID, members)
	}
	return nil
}

// distrust stops the votes of this store: its disk is a copy put back, and what it
// promised since the copy was made is gone. The caller holds mu.
func (r *replica) distrust(why error) error {
	r.distrusted = why.Error()
	r.log.Error("store stops voting until it is replaced", "reason", r.distrusted)
	return fmt.Errorf("store %s: %w: %w: %s", r.identity.Name, seq.ErrNotVoting, errOldDisk, r.distrusted)
}

// recorded makes the distrust last that err tells of, if it does, and returns err.
func (r *replica) recorded(err error) error {
	if errors.Is(err, errOldDisk) {
		// Whether or not the mark gets to the disk, this process votes no more.
		if failed := r.recordDistrust(); failed != nil {
			r.log.Error("cannot record that the disk is old", "error", failed)
		}
	}
	return err
}

// recordDistrust makes it last beyond this process. It does not end with the request
// that gave the proof.
func (r *replica) recordDistrust() error {
	return r.submit(context.Background(), &write{apply: func(_ time.Duration, _ bool, u *disk.Update) error {
		u.Distrusted = r.distrusted
		return nil
	}})
}

// description is an identity with what only operators read.
type description struct {
	quorum.Identity
	leaseBound time.Duration
	registers  int
	free       uint64
	nearlyFull bool
	kept       time.Duration // until the store's clock is at the floor of worker ids
	uptime     time.Duration
}

// describe works in every state of the store.
func (r *replica) describe() description {
	full := r.full(nil)
	free, err := r.disk.Free()
	if err != nil {
		free = 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	voting, state := r.state()
	n, rq, w := r.quorums()
	nonce := uint64(0)
	if would, _ := r.standing(); would && !voting {
		nonce = r.compared.nonce
	}
	return description{
		Identity: quorum.Identity{
			UUID: r.identity.UUID, Name: r.identity.Name, BootCount: r.boots, Ref: r.ref(),
			N: n, R: rq, W: w, Mapping: r.identity.Mapping,
			Members: slices.Clone(r.members.List), Voting: voting, State: state,
			MaxLease: r.maxLease, Grace: r.acceptor.Grace(now), Commits: r.commits,
			LeaseBound: r.acceptor.LeaseBound(), ListAge: now - r.listed, Filled: r.members.Filled,
			Nonce: nonce, Remembered: r.recollection(),
			Floors: r.acceptor.Floors(),
		},
		leaseBound: r.acceptor.LeaseBound(),
		registers:  r.acceptor.Registers(),
		free:       free,
		nearlyFull: full,
		kept:       keptBack(r.acceptor.Floors(), r.wall()),
		uptime:     now - r.started,
	}
}

package storesvr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// quorums are N, R and W as the store has them. The caller holds mu.
func (r *replica) quorums() (n, rq, w int) {
	if r.members.W == 0 {
		return r.identity.N, r.identity.R, r.identity.W
	}
	return listOf(r.members).N(), r.members.R, r.members.W
}

func listOf(m disk.Members) quorum.MemberList {
	return quorum.MemberList{Version: m.Version, R: m.R, W: m.W, Members: m.List}
}

// unlisted is the state of a store that has no member list. The caller holds mu.
func (r *replica) unlisted() (voting bool, state string) {
	if r.identity.Learner {
		return false, "learner: waiting for seqctl store replace or add"
	}
	return false, "unbound: waiting for its fellow members"
}

// listedAs is the state by the member list. The caller holds mu.
func (r *replica) listedAs() (voting bool, state string) {
	me, listed := listOf(r.members).Find(r.identity.UUID)
	switch {
	case !listed:
		return false, fmt.Sprintf("removed: no member since version %d of the list or before", r.members.Version)
	case me.Learner && r.members.Filled == r.members.Version:
		return false, "learner: filled, waiting to be made a voter"
	case me.Learner:
		return false, "learner: being filled"
	}
	return true, "voting"
}

// adopt takes a decided member list over if it is newer than the store's own. Durable
// when it returns nil: from then on requests under any other list are refused. Errors:
// seq.ErrForeignCluster, seq.ErrStaleEra for an older list, seq.ErrNotVoting for a list
// that makes a voter of a store that is not filled, seq.ErrBadArgument.
func (r *replica) adopt(ctx context.Context, cluster string, era seq.Era, list quorum.MemberList) error {
	list.Sort()
	if err := list.Validate(); err != nil {
		return fmt.Errorf("adopt: %w: %w", seq.ErrBadArgument, err)
	}
	var next *disk.Members
	err := r.submit(ctx, &write{
		apply: func(_ time.Duration, full bool, u *disk.Update) error {
			if err := r.sameCluster(cluster, era); err != nil {
				return err
			}
			own := r.members
			if u.Members != nil { // by another request of the same group
				own = *u.Members
			}
			change, err := r.admitList(own, list)
			if err != nil || !change {
				return err
			}
			if full {
				return seq.ErrStoreFull
			}
			u.Members = &disk.Members{Version: list.Version, List: list.Members, R: list.R, W: list.W, Filled: own.Filled}
			next = u.Members
			return nil
		},
		committed: func() {
			if next != nil && next.Version > r.members.Version {
				r.members, r.listed = *next, r.clock.Now()
				r.log.Info("took a member list over", "version", next.Version, "members", next.List)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("adopt member list %d at store %s: %w", list.Version, r.identity.Name, err)
	}
	return nil
}

// admitList says whether the list is to take the place of own. The caller holds mu.
func (r *replica) admitList(own disk.Members, list quorum.MemberList) (change bool, err error) {
	switch {
	case list.Version < own.Version:
		return false, fmt.Errorf("%w: it has version %d", seq.ErrStaleEra, own.Version)
	case list.Version == own.Version && (own.W == 0 || listOf(own).Equal(list)):
		return false, nil
	case list.Version == own.Version:
		return false, fmt.Errorf("%w: its version %d is another list", seq.ErrStaleEra, own.Version)
	}
	me, listed := list.Find(r.identity.UUID)
	before, was := listOf(own).Find(r.identity.UUID)
	fresh := own.Version == 0
	switch {
	case fresh && !r.identity.Learner:
		return false, fmt.Errorf("%w: it is not bound; a store for a cluster that runs is made by storesvr init --learner", seq.ErrNotVoting)
	case fresh && !listed:
		return false, fmt.Errorf("%w: it is not in the list", seq.ErrNotVoting)
	case !listed || me.Learner:
		return true, nil
	case fresh, was && before.Learner && own.Filled != own.Version:
		return false, fmt.Errorf("%w: it is not filled", seq.ErrNotVoting)
	}
	return true, nil
}

type fillRequest struct {
	ref      quorum.Ref
	session  seq.Session
	secret   seq.Secret // of session
	records  []quorum.RegisterState
	complete bool
	bound    time.Duration
}

// fill merges states of other stores. Durable when it returns nil. Errors: those of
// sameList, seq.ErrNotVoting for a store that must not take part, seq.ErrStoreFull,
// seq.ErrBadArgument, and seq.ErrOverloaded during the grace: repeat it later. After an
// error a part of the records may have been merged.
func (r *replica) fill(ctx context.Context, req fillRequest) (changed int, err error) {
	if err := req.secret.Proves(req.session); err != nil {
		return 0, fmt.Errorf("fill store %s: %w", r.identity.Name, err)
	}
	size := 0
	for _, st := range req.records {
		size += 256 + len(st.Payload)
	}
	var filled *disk.Members
	err = r.submit(ctx, &write{size: size,
		apply: func(now time.Duration, full bool, u *disk.Update) error {
			learner, err := r.fillable(req.ref)
			if err != nil {
				return err
			}
			if full {
				return seq.ErrStoreFull
			}
			if changed, err = r.merge(req, learner, now); err != nil {
				return err
			}
			if learner && req.complete {
				if u.Members != nil { // a list of the same group would be lost
					return fmt.Errorf("%w: its member list is changing", seq.ErrOverloaded)
				}
				m := r.members
				m.Filled = m.Version
				u.Members, filled = &m, &m
				u.LeaseBound = max(u.LeaseBound, req.bound, r.acceptor.LeaseBound())
			}
			return nil
		},
		committed: func() {
			if filled != nil && filled.Version == r.members.Version {
				r.members = *filled
				r.acceptor.SetLeaseBound(req.bound)
			}
		},
	})
	if err != nil {
		return 0, fmt.Errorf("fill store %s: %w", r.identity.Name, err)
	}
	return changed, nil
}

func (r *replica) merge(req fillRequest, learner bool, now time.Duration) (changed int, err error) {
	for _, st := range req.records {
		did, err := r.acceptor.Merge(st, req.session, learner, now)
		switch {
		case errors.Is(err, acceptor.ErrGrace):
			return changed, fmt.Errorf("%w: %w", seq.ErrOverloaded, err)
		case err != nil:
			return changed, err
		case did:
			changed++
		}
	}
	return changed, nil
}

// fillable says whether the store may be filled under the list, and as what. The caller
// holds mu.
func (r *replica) fillable(ref quorum.Ref) (learner bool, err error) {
	if err := r.sameList(ref); err != nil {
		return false, err
	}
	voting, state := r.state()
	me, listed := listOf(r.members).Find(r.identity.UUID)
	if would, _ := r.standing(); would && !voting {
		return false, fmt.Errorf("store %s: %w: %s", r.identity.Name, seq.ErrOverloaded, state)
	}
	if !voting && (r.err != nil || r.distrusted != "" || !listed || !me.Learner) {
		return false, fmt.Errorf("store %s: %w: %s", r.identity.Name, seq.ErrNotVoting, state)
	}
	return me.Learner, nil
}

// dumpStep is how many registers are copied at a time, so that no lease waits for more.
const dumpStep = 4096

// dump hands all registers to give, as they are on disk, in the order of their names.
// ref, if not zero, must be the store's. Registers are looked at one after the other:
// what was on disk before dump began is in it.
func (r *replica) dump(ref quorum.Ref, give func([]quorum.RegisterState) error) error {
	for after := seq.Register(""); ; {
		r.mu.Lock()
		err := r.err
		if err == nil && ref != (quorum.Ref{}) {
			err = r.sameList(ref)
		}
		var states []quorum.RegisterState
		if err == nil {
			states = r.acceptor.Dump(after, dumpStep)
		}
		r.mu.Unlock()
		if err != nil {
			return fmt.Errorf("dump: %w", err)
		}
		if len(states) == 0 {
			return nil
		}
		if err := give(states); err != nil {
			return err
		}
		after = states[len(states)-1].Register
	}
}

package storesvr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// change answers those that decide who the stores are: whoever connects to all of them for
// the first time, and operators who replace, add and remove one.
type change struct {
	core   *core
	writer *writer
}

// binding is a request to bind the store to its fellow members.
type binding struct {
	cluster string
	era     seq.Era
	members []quorum.Member
	step    pb.BindStep
	origin  seq.ClusterID // of the cluster that was restored; zero: of none that is known
}

// bind records the fellow members, once for the life of the disk: so a new disk under the old
// name, with another uuid, never passes for the old disk. The store votes after the step that says
// that all of them are bound, or after the only step of a build of the version before. The same
// list again is fine; another list is seq.ErrStaleEra; a list that does not fit what init was
// told is seq.ErrBadArgument; another origin is seq.ErrForeignCluster. Durable when it returns nil.
func (ch *change) bind(ctx context.Context, req binding) error {
	c := ch.core
	sorted := slices.SortedFunc(slices.Values(req.members), func(a, b quorum.Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UUID, b.UUID))
	})
	first := func(own disk.Members) (*disk.Members, seq.Incarnation, error) {
		origin := cmp.Or(req.origin, c.members.life.Cluster)
		next, err := c.members.bound(own, sorted, req.step)
		return next, quorum.MemberList{Members: sorted}.Derived(origin, req.cluster, req.era), err
	}
	err := ch.install(ctx, req.cluster, req.era, first, func() {
		if c.members.Pending {
			c.log.Info("bound to its fellow members, which are not all bound yet", "members", sorted)
			return
		}
		// Without fellows there is nothing to be asked, and before this no vote.
		c.witness.done = c.witness.done || len(sorted) == 1
		c.log.Info("bound to its fellow members", "members", sorted)
	})
	if err != nil {
		return fmt.Errorf("bind store %s: %w", c.identity.Name, err)
	}
	return nil
}

// adopt replaces the store's member list if the decided list is newer. After it returns nil, the
// list is durable, and the store refuses requests under any other list. Errors:
// seq.ErrForeignCluster, seq.ErrStaleEra for an older list, seq.ErrNotVoting for a list in which an
// unfilled store votes, seq.ErrBadArgument.
func (ch *change) adopt(ctx context.Context, cluster string, era seq.Era, list quorum.MemberList) error {
	list.Sort()
	if err := list.Validate(); err != nil {
		return fmt.Errorf("adopt: %w: %w", seq.ErrBadArgument, err)
	}
	c := ch.core
	next := func(own disk.Members) (*disk.Members, seq.Incarnation, error) {
		next, err := c.members.next(own, list)
		return next, list.Incarnation, err
	}
	err := ch.install(ctx, cluster, era, next, func() {
		c.members.since = c.clock.Now()
		c.log.Info("took a member list over", "version", list.Version, "members", list.Members)
	})
	if err != nil {
		return fmt.Errorf("adopt member list %d at store %s: %w", list.Version, c.identity.Name, err)
	}
	return nil
}

// install commits the list that next has follow the store's own, if any, and the incarnation with
// it, and puts both in force. installed runs under core.mu then.
func (ch *change) install(ctx context.Context, cluster string, era seq.Era, next func(own disk.Members) (*disk.Members, seq.Incarnation, error), installed func()) error {
	c := ch.core
	var list *disk.Members
	var known *seq.Incarnation
	return ch.writer.submit(ctx, &write{
		apply: func(_ time.Duration, full bool, u *disk.Update) error {
			if err := c.members.sameCluster(cluster, era); err != nil {
				return err
			}
			own := c.members.Members
			if u.Members != nil { // by another request of the same group
				own = *u.Members
			}
			follows, life, err := next(own)
			if err == nil {
				err = c.members.life.Check(life)
			}
			if err != nil || follows == nil {
				return err
			}
			if full {
				return seq.ErrStoreFull
			}
			u.Members, list = follows, follows
			if known = c.members.living(life); known.Known() {
				u.Incarnation = known
			}
			return nil
		},
		committed: func() {
			if list != nil && (list.Version > c.members.Version || list.Version == c.members.Version && c.members.Pending) {
				c.members.Members, c.members.life = *list, *known
				installed()
			}
		},
	})
}

type fillRequest struct {
	ref      quorum.Ref
	session  seq.Session
	secret   seq.Secret // of session
	records  []quorum.RegisterState
	complete bool
	bound    time.Duration
}

// fill merges states of other stores. They are durable when it returns nil. It returns the errors
// of sameList, seq.ErrNotVoting for a store that must not take part, seq.ErrStoreFull and
// seq.ErrBadArgument. During the grace it returns seq.ErrOverloaded, and the caller retries later.
// After an error some records may have been merged.
func (ch *change) fill(ctx context.Context, req fillRequest) (changed int, err error) {
	c := ch.core
	if err := req.secret.Proves(req.session); err != nil {
		return 0, fmt.Errorf("fill store %s: %w", c.identity.Name, err)
	}
	size := 0
	for _, st := range req.records {
		size += 256 + len(st.Payload)
	}
	var filled *disk.Members
	err = ch.writer.submit(ctx, &write{size: size,
		apply: func(now time.Duration, full bool, u *disk.Update) error {
			learner, err := c.fillable(req.ref)
			if err != nil {
				return err
			}
			if full {
				return seq.ErrStoreFull
			}
			if changed, err = ch.merge(req, learner, now); err != nil {
				return err
			}
			if learner && req.complete {
				if u.Members != nil { // a list of the same group would be lost
					return fmt.Errorf("%w: its member list is changing", seq.ErrOverloaded)
				}
				m := c.members.Members
				m.Filled = m.Version
				u.Members, filled = &m, &m
				u.LeaseBound = max(u.LeaseBound, req.bound, c.acceptor.LeaseBound())
			}
			return nil
		},
		committed: func() {
			if filled != nil && filled.Version == c.members.Version {
				c.members.Members = *filled
				c.acceptor.SetLeaseBound(req.bound)
			}
		},
	})
	if err != nil {
		return 0, fmt.Errorf("fill store %s: %w", c.identity.Name, err)
	}
	return changed, nil
}

func (ch *change) merge(req fillRequest, learner bool, now time.Duration) (changed int, err error) {
	for _, st := range req.records {
		did, err := ch.core.acceptor.Merge(st, req.session, learner, now)
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
func (c *core) fillable(ref quorum.Ref) (learner bool, err error) {
	if err := c.members.sameList(ref); err != nil {
		return false, err
	}
	voting, state := c.state()
	me, listed := listOf(c.members.Members).Find(c.identity.UUID)
	if would, _ := c.standing(); would && !voting {
		return false, fmt.Errorf("store %s: %w: %s", c.identity.Name, seq.ErrOverloaded, state)
	}
	if !voting && (c.err != nil || c.witness.distrusted != "" || !listed || !me.Learner) {
		return false, fmt.Errorf("store %s: %w: %s", c.identity.Name, seq.ErrNotVoting, state)
	}
	return me.Learner, nil
}

package storesvr

import (
	"fmt"
	"slices"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// members is who the stores are, as committed, and what follows from it for this one. It
// has no lock and no clock: core guards it.
type members struct {
	disk.Members
	self  disk.Identity
	since time.Duration // the list is in force since then or longer
	life  seq.Incarnation
}

// lifeOf returns the incarnation that the disk has, or derives it from the first member list of a
// store that the version before bound. A later list does not tell it.
func lifeOf(meta disk.Meta) seq.Incarnation {
	if meta.Members.Version != 1 || !meta.Incarnation.Binding.IsZero() {
		return meta.Incarnation
	}
	return listOf(meta.Members).Derived(meta.Incarnation.Cluster, meta.Cluster, meta.Era)
}

// living returns what the store knows of its incarnation with a list that says told.
func (m *members) living(told seq.Incarnation) *seq.Incarnation {
	if told.Known() && m.life.Binding.IsZero() {
		return &told
	}
	own := m.life
	return &own
}

// ref is what callers must believe of this store.
func (m *members) ref() quorum.Ref {
	return quorum.Ref{
		Cluster: m.self.Cluster, Era: m.self.Era,
		Members: m.Version, MembersHash: quorum.MembersHash(m.List),
	}
}

// quorums are N, R and W as the store has them.
func (m *members) quorums() (n, rq, w int) {
	if m.W == 0 {
		return m.self.N, m.self.R, m.self.W
	}
	return listOf(m.Members).N(), m.R, m.W
}

func listOf(m disk.Members) quorum.MemberList {
	return quorum.MemberList{Version: m.Version, R: m.R, W: m.W, Members: m.List}
}

// standing is "voting" or why the list keeps the store from it.
func (m *members) standing() (voting bool, state string) {
	me, listed := listOf(m.Members).Find(m.self.UUID)
	switch {
	case m.Version == 0 && m.self.Learner:
		return false, "learner: waiting for seqctl store replace or add"
	case m.Version == 0:
		return false, "unbound: waiting for its fellow members"
	case m.Pending:
		return false, "bound: waiting to hear that all its fellow members are"
	case m.Version == 1:
		return true, "voting"
	case !listed:
		return false, fmt.Sprintf("removed: no member since version %d of the list or before", m.Version)
	case me.Learner && m.Filled == m.Version:
		return false, "learner: filled, waiting to be made a voter"
	case me.Learner:
		return false, "learner: being filled"
	}
	return true, "voting"
}

// sameList checks that the caller means this store's member list.
func (m *members) sameList(ref quorum.Ref) error {
	if err := m.sameCluster(ref.Cluster, ref.Era); err != nil {
		return err
	}
	if own := m.ref(); ref != own {
		return fmt.Errorf("store %s: %w: it has member list %d (%016x), the caller %d (%016x)", m.self.Name,
			seq.ErrStaleEra, own.Members, own.MembersHash, ref.Members, ref.MembersHash)
	}
	return nil
}

func (m *members) sameCluster(cluster string, era seq.Era) error {
	switch {
	case cluster != m.self.Cluster:
		return fmt.Errorf("store %s: %w: it is of %q, the caller of %q", m.self.Name, seq.ErrForeignCluster, m.self.Cluster, cluster)
	case era != m.self.Era:
		return fmt.Errorf("store %s: %w: it is of era %d, the caller of %d", m.self.Name, seq.ErrStaleEra, m.self.Era, era)
	}
	return nil
}

// bound returns what takes the place of own if the store is bound to the members, which are sorted
// by name. It returns nil if there is nothing to change.
func (m *members) bound(own disk.Members, members []quorum.Member, step pb.BindStep) (*disk.Members, error) {
	if err := m.fits(members); err != nil {
		return nil, err
	}
	first := step == pb.BindStep_BIND_STEP_BIND
	switch {
	case m.self.Learner:
		return nil, fmt.Errorf("%w: it was made to be filled by a cluster: seqctl store replace or add", seq.ErrBadArgument)
	case own.Version == 0 && step == pb.BindStep_BIND_STEP_COMPLETE:
		return nil, fmt.Errorf("%w: it is not bound, so the list is not complete", seq.ErrNotVoting)
	case own.Version == 0:
		return &disk.Members{Version: 1, List: members, Pending: first}, nil
	case !slices.EqualFunc(own.List, members, quorum.Member.Same):
		return nil, fmt.Errorf("%w: already bound to %v", seq.ErrStaleEra, own.List)
	case own.Pending && !first:
		own.Pending = false
		return &own, nil
	}
	return nil, nil
}

// fits checks a member list, sorted by name, against what init was told.
func (m *members) fits(members []quorum.Member) error {
	names, uuids := make([]string, len(members)), make([]string, len(members))
	for i, m := range members {
		names[i], uuids[i] = m.Name, m.UUID
	}
	slices.Sort(uuids)
	switch {
	case !slices.Equal(names, slices.Sorted(slices.Values(m.self.Names))):
		return fmt.Errorf("%w: members %q, init was told %q", seq.ErrBadArgument, names, m.self.Names)
	case slices.Contains(uuids, "") || len(slices.Compact(uuids)) != len(members):
		return fmt.Errorf("%w: a member uuid empty or twice in %q", seq.ErrBadArgument, uuids)
	case !slices.ContainsFunc(members, quorum.Member{UUID: m.self.UUID, Name: m.self.Name}.Same):
		return fmt.Errorf("%w: this store, %s %s, is not among %v", seq.ErrBadArgument, m.self.Name, m.self.UUID, members)
	}
	return nil
}

// next is what takes the place of own if the list is adopted; nil if the two are the same.
func (m *members) next(own disk.Members, list quorum.MemberList) (*disk.Members, error) {
	switch {
	case list.Version < own.Version:
		return nil, fmt.Errorf("%w: it has version %d", seq.ErrStaleEra, own.Version)
	case list.Version == own.Version && (own.W == 0 || listOf(own).Equal(list)):
		return nil, nil
	case list.Version == own.Version:
		return nil, fmt.Errorf("%w: its version %d is another list", seq.ErrStaleEra, own.Version)
	}
	next := &disk.Members{Version: list.Version, List: list.Members, R: list.R, W: list.W, Filled: own.Filled}
	me, listed := list.Find(m.self.UUID)
	before, was := listOf(own).Find(m.self.UUID)
	fresh, unfilled := own.Version == 0, was && before.Learner && own.Filled != own.Version
	switch {
	case fresh && !m.self.Learner:
		return nil, fmt.Errorf("%w: it is not bound; a store for a cluster that runs is made by storesvr init --learner", seq.ErrNotVoting)
	case fresh && !listed:
		return nil, fmt.Errorf("%w: it is not in the list", seq.ErrNotVoting)
	case !listed || me.Learner:
		if unfilled { // nor does it count as filled once it was taken out: a change may go back, and its disk be an old one
			next.Filled = 0
		}
		return next, nil
	case fresh, unfilled, m.self.Learner && own.Filled == 0:
		return nil, fmt.Errorf("%w: it is not filled", seq.ErrNotVoting)
	}
	return next, nil
}

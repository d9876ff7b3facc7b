package storeclient

import (
	"cmp"
	"context"
	"slices"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// bind binds the stores to each other, in two steps. A store that is bound is pending, and votes
// only after it hears that all members of its list are bound. A store binds once, so of two lists
// that share a store only one can ever be complete, however many requests and answers are lost.
//
// Stores are bound in the order of rising uuid, and the first that does not say yes ends it. So
// of two binders only one gets the first store that both need, and the other binds none after it.
//
// A complete store proves that its list is, and the others are told. A store that refuses keeps its
// error and does not vote.
func bind(ctx context.Context, stores []*candidate) {
	there := answered(stores)
	list := newest(there)
	if list.Version > 1 {
		return // what is not bound by now was made for another list
	}
	ctx, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	if slices.ContainsFunc(there, func(s *candidate) bool { return s.bound() && !s.id.Pending }) {
		complete(ctx, there, list.Members)
		return
	}
	if len(there) == 0 || len(there) != there[0].id.N {
		return
	}
	members := membersOf(there)
	if list.Version == 1 && !slices.EqualFunc(members, list.Members, quorum.Member.Same) {
		return
	}
	for _, s := range there { // of rising uuid
		if s.bound() {
			continue
		}
		if s.id, s.err = s.client.Bind(ctx, s.binding(members, originOf(there))); s.err != nil {
			return
		}
	}
	complete(ctx, there, members)
}

// membersOf sorts the stores by uuid, and returns them as a first member list.
func membersOf(there []*candidate) []quorum.Member {
	slices.SortFunc(there, func(a, b *candidate) int { return cmp.Compare(a.id.UUID, b.id.UUID) })
	var list quorum.MemberList
	for _, s := range there {
		list.Members = append(list.Members, quorum.Member{UUID: s.id.UUID, Name: s.id.Name, Zone: s.id.Zone})
	}
	list.Sort()
	return list.Members
}

func (s *candidate) binding(members []quorum.Member, origin seq.ClusterID) Binding {
	return Binding{Cluster: s.id.Ref.Cluster, Era: s.id.Ref.Era, Members: members, Origin: origin}
}

// originOf returns the cluster that the stores were restored of, if one of them tells it.
func originOf(there []*candidate) (id seq.ClusterID) {
	for _, s := range there {
		id = cmp.Or(id, s.id.Incarnation.Cluster)
	}
	return id
}

// complete tells the members among the stores that all members of their list are bound. A store
// that is not bound is bound first: a build of the version before bound the others.
func complete(ctx context.Context, there []*candidate, members []quorum.Member) {
	origin := originOf(there)
	each(ctx, there, func(ctx context.Context, s *candidate) {
		if !slices.ContainsFunc(members, func(m quorum.Member) bool { return m.UUID == s.id.UUID }) {
			return
		}
		b := s.binding(members, origin)
		if !s.bound() {
			s.id, s.err = s.client.Bind(ctx, b)
		}
		if b.Complete = true; s.err == nil && s.id.Pending {
			s.id, s.err = s.client.Bind(ctx, b)
		}
	})
}

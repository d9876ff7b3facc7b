package storeclient

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// newest is the member list of the highest version that one of the stores has.
func newest(there []*candidate) quorum.MemberList {
	var list quorum.MemberList
	for _, s := range there {
		if l := s.id.List(); l.Version > list.Version {
			list = l
		}
	}
	return list
}

// voterOf is the voter of the list that the candidate is, or, as long as it has not
// answered, whose address it has; nil if it is none.
func voterOf(list quorum.MemberList, s *candidate) *quorum.Member {
	uuid := s.client.UUID()
	for _, m := range list.Voters() {
		if m.UUID == uuid || uuid == "" && m.Addr == s.client.Addr() {
			return &m
		}
	}
	return nil
}

// DialMember is Dial for a client that speaks with that member alone: another
// store may be at its address, a new one on the same machine for example.
func DialMember(m quorum.Member, opts ...grpc.DialOption) (*Client, error) {
	client, err := Dial(m.Addr, opts...)
	if err == nil {
		client.uuid.Store(&m.UUID)
	}
	return client, err
}

// unheardOf dials the voters of the newest list that no candidate is. On an error, what
// it returns is still to be closed.
func unheardOf(stores []*candidate, opts []grpc.DialOption) (more []*candidate, err error) {
	list := newest(answered(stores))
	if list.Version <= 1 {
		return nil, nil
	}
	for _, m := range list.Voters() {
		if slices.ContainsFunc(stores, func(s *candidate) bool {
			voter := voterOf(list, s)
			return voter != nil && voter.UUID == m.UUID
		}) {
			continue
		}
		client, err := DialMember(m, opts...)
		if err != nil {
			return more, err
		}
		more = append(more, &candidate{client: client, member: true, err: errNotAsked})
	}
	return more, nil
}

// adopt tells the newest list to the stores that answered with an older one. A store
// that refuses keeps what it told of itself, and is not counted.
func adopt(ctx context.Context, stores []*candidate) {
	there := answered(stores)
	list := newest(there)
	if list.Version <= 1 {
		return
	}
	older := slices.DeleteFunc(there, func(s *candidate) bool { return s.id.Ref.Members == list.Version || !s.bound() })
	each(ctx, older, func(ctx context.Context, s *candidate) {
		if id, err := s.client.Adopt(ctx, s.id.Ref.Cluster, s.id.Ref.Era, list); err == nil {
			s.id = id
		}
	})
}

// longest is the mapping of the most spaces that one of the stores has.
func longest(there []*candidate) (m seq.Mapping) {
	for _, s := range there {
		if s.id.Mapping.Extends(m) {
			m = s.id.Mapping
		}
	}
	return m
}

// known returns the incarnation that one of the stores tells: builds of the version before tell none.
func known(there []*candidate) (in seq.Incarnation) {
	for _, s := range there {
		if !in.Known() && s.bound() {
			in = s.id.Incarnation
		}
	}
	return in
}

// extend tells the longest mapping to the stores that answered with a shorter one: a store
// has only what was decided. One that refuses keeps what it told of itself.
func extend(ctx context.Context, stores []*candidate) {
	there := answered(stores)
	m := longest(there)
	shorter := slices.DeleteFunc(there, func(s *candidate) bool { return !s.bound() || s.id.Mapping.Extends(m) })
	each(ctx, shorter, func(ctx context.Context, s *candidate) {
		if id, err := s.client.Extend(ctx, s.id.Ref.Cluster, s.id.Ref.Era, m); err == nil {
			s.id = id
		}
	})
}

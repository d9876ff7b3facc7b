package storeclient

import (
	"cmp"
	"errors"
	"slices"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// clusterOf takes the voters of the list and closes what else there is. Members are matched by
// uuid, wherever they answer.
func clusterOf(id quorum.Identity, stores []*candidate) Cluster {
	list := id.List()
	c, is := Cluster{Identity: id}, map[*candidate]quorum.Member{}
	var missing []quorum.Member
	for _, m := range list.Voters() {
		if s := memberAt(m, stores); s != nil {
			is[s] = m
		} else {
			missing = append(missing, m)
		}
	}
	for _, s := range stores {
		if s.odd != nil || Refused(s.err) {
			c.Odd = append(c.Odd, Odd{Addr: s.client.Addr(), Name: s.id.Name, UUID: s.id.UUID, Err: cmp.Or(s.odd, s.err)})
		}
		m, found := is[s]
		guess := !found
		if guess && list.Version <= 1 && len(missing) > 0 { // the first list has no addresses: a guess
			i := max(0, slices.IndexFunc(missing, func(m quorum.Member) bool { return m.Name == s.id.Name }))
			m, found = missing[i], true
			missing = slices.Delete(missing, i, i+1)
		}
		if !found {
			_ = s.client.Close() // nothing is under way
			continue
		}
		s.client.uuid.Store(&m.UUID)
		c.Stores = append(c.Stores, Named{Addr: s.client.Addr(), UUID: m.UUID, Guess: guess, Client: s.client})
	}
	return c
}

// memberAt returns the candidate that is the member: one that answered as the member, or else one
// that did before, whose client is made for it, or that has its address and never answered.
func memberAt(m quorum.Member, stores []*candidate) *candidate {
	var before *candidate
	for _, s := range stores {
		if s.err == nil && s.odd == nil && s.id.UUID == m.UUID {
			return s
		}
		if uuid := s.client.UUID(); s.err != nil && (uuid == m.UUID || uuid == "" && m.Addr == s.client.Addr()) {
			before = s
		}
	}
	return before
}

// rematch moves each client to the address where its store answered, and returns the candidates of
// those that moved. A client whose store answered nowhere takes an address that is left. If
// another store answers there, that is the candidate's error.
func rematch(asked []*candidate) (moved []*candidate) {
	type answer struct {
		seat *seat
		id   quorum.Identity
		err  error
	}
	free := make([]*answer, len(asked))
	for i, s := range asked {
		free[i] = &answer{s.client.at.Load(), s.id, s.err}
	}
	take := func(i int, fits func(j int, a *answer) bool) *answer {
		for j, a := range free {
			if a != nil && fits(j, a) {
				free[j] = nil
				return a
			}
		}
		return nil
	}
	got := make([]*answer, len(asked))
	for _, fits := range []func(i, j int, a *answer) bool{
		func(i, j int, a *answer) bool { return i == j && a.id.UUID == asked[i].client.UUID() },
		func(i, _ int, a *answer) bool { return a.err == nil && a.id.UUID == asked[i].client.UUID() },
		func(i, j int, _ *answer) bool { return i == j },
		func(int, int, *answer) bool { return true },
	} {
		for i := range asked {
			if got[i] == nil {
				got[i] = take(i, func(j int, a *answer) bool { return fits(i, j, a) })
			}
		}
	}
	for i, s := range asked {
		a := got[i]
		if s.id, s.err = a.id, a.err; s.err == nil {
			s.err = s.client.check("describe", a.id.UUID, nil)
		}
		if s.client.at.Swap(a.seat) != a.seat && s.err == nil {
			moved = append(moved, s)
		}
	}
	return moved
}

// Refused reports whether a store answered, and is not the store that was meant or refuses the
// caller.
func Refused(err error) bool {
	return slices.ContainsFunc([]error{seq.ErrForeignCluster, seq.ErrStaleEra, seq.ErrBadMapping, seq.ErrProtocol, seq.ErrBadArgument,
		seq.ErrUnauthenticated, seq.ErrForbidden}, func(e error) bool { return errors.Is(err, e) })
}

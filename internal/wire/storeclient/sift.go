package storeclient

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// side is stores that belong together.
type side struct {
	first  *candidate
	stores []*candidate
	// rank is 1 if W of them vote under one list, and 2 if, besides, there are not more addresses
	// than the first list has stores: a cluster of fewer stores is another than was meant.
	rank int
}

// sift finds the stores that belong together, and marks the others as odd. It returns an error if
// two sides have W stores each, or if no side can get as many.
func sift(stores []*candidate) error {
	addrs, silent := 0, 0
	for _, s := range stores {
		s.odd = nil
		if !s.member {
			addrs++
		}
		if s.err != nil {
			silent++ // and may belong to them
		}
	}
	twice(answered(stores))
	there := answered(stores)
	if len(there) == 0 {
		return nil
	}
	best := sideOf(there[0], there, addrs)
	for _, s := range there[1:] {
		other := sideOf(s, there, addrs)
		if other.rank > 0 && other.rank == best.rank && !slices.Contains(best.stores, s) {
			return fmt.Errorf("store %s: %w; at either enough stores agree to serve", s.client.Addr(), best.why(s))
		}
		if other.better(best) {
			best = other
		}
	}
	for _, s := range there {
		if !slices.Contains(best.stores, s) {
			s.odd = fmt.Errorf("store %s: %w", s.client.Addr(), best.why(s))
		}
	}
	if best.rank == 0 && len(best.stores)+silent < best.needs() {
		return errors.Join(oddities(stores)...)
	}
	strangers(best.stores)
	if n := best.first.id.N; len(answered(stores)) > n && newest(best.stores).Version <= 1 {
		return fmt.Errorf("%w: %d stores answer, N is %d", seq.ErrBadArgument, len(answered(stores)), n)
	}
	return nil
}

// twice marks a store that answers at a second address, and both processes of a store that is alive
// twice.
func twice(there []*candidate) {
	at := map[string]*candidate{}
	for _, s := range there {
		other := at[s.id.UUID]
		switch {
		case other == nil:
			at[s.id.UUID] = s
		case s.id.Start == other.id.Start:
			s.odd = fmt.Errorf("store %s: %w: it is the store at %s again", s.client.Addr(), seq.ErrBadArgument, other.client.Addr())
		default:
			s.odd = alive(s, other)
			other.odd = alive(other, s)
		}
	}
}

func alive(s, other *candidate) error {
	return fmt.Errorf("store %s: %w: another process of %s, uuid %s, answers at %s: its disk was copied, and both copies run", s.client.Addr(), seq.ErrNotVoting,
		s.id.Name, s.id.UUID, other.client.Addr())
}

// sideOf returns the stores that belong to first. addrs counts the given addresses.
func sideOf(first *candidate, there []*candidate, addrs int) side {
	out := side{first: first, stores: []*candidate{first}}
	for _, s := range there {
		if s != first && out.why(s) == nil {
			out.stores = append(out.stores, s)
		}
	}
	list, votes := newest(out.stores), 0
	for _, s := range out.stores {
		if s.id.Voting && s.id.Ref.Members == list.Version {
			votes++
		}
	}
	switch {
	case votes == 0 || votes < list.W:
	case list.Version == 1 && list.N() < addrs:
		out.rank = 1
	default:
		out.rank = 2
	}
	return out
}

// better reports whether the side is to be gone by rather than the other.
func (a side) better(b side) bool {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(len(a.stores), len(b.stores))) > 0
}

// why says what keeps the store from the side; nil if nothing does.
func (a side) why(s *candidate) error {
	for _, o := range a.stores {
		if err := apart(o, s); err != nil {
			return err
		}
	}
	return nil
}

// needs returns how many stores of the side must answer: W, or all if the stores are not bound.
func (a side) needs() int {
	if list := newest(a.stores); list.Version > 0 {
		return list.W
	}
	return a.first.id.N
}

// strangers marks the stores that answer in the place of a member of the list.
func strangers(there []*candidate) {
	list := newest(there)
	if list.Version == 0 {
		return
	}
	for _, s := range there {
		if _, listed := list.Find(s.id.UUID); listed || s.bound() && s.id.Ref.Members < list.Version {
			continue
		}
		i := slices.IndexFunc(list.Members, func(m quorum.Member) bool { return m.Name == s.id.Name })
		if i < 0 {
			s.odd = fmt.Errorf("store %s: %w: %s, uuid %s, is no member of %v", s.client.Addr(), seq.ErrNotVoting, s.id.Name, s.id.UUID, list.Members)
			continue
		}
		s.odd = fmt.Errorf("store %s: %w: uuid %s answers, and the member list has uuid %s as %s", s.client.Addr(), seq.ErrNotVoting, s.id.UUID, list.Members[i].UUID, s.id.Name)
	}
}

// apart says why the two do not belong together.
func apart(first, s *candidate) error {
	a, b := first.id, s.id
	switch {
	case b.Ref.Cluster != a.Ref.Cluster:
		return fmt.Errorf("%w: it is of %q, the store at %s of %q", seq.ErrForeignCluster, b.Ref.Cluster, first.client.Addr(), a.Ref.Cluster)
	case b.Ref.Era != a.Ref.Era:
		return fmt.Errorf("%w: it is of era %d, the store at %s of %d", seq.ErrStaleEra, b.Ref.Era, first.client.Addr(), a.Ref.Era)
	case (b.Ref.Members == a.Ref.Members || max(b.Ref.Members, a.Ref.Members) <= 1) && (b.N != a.N || b.R != a.R || b.W != a.W):
		return fmt.Errorf("%w: its N/R/W are %d/%d/%d, those of the store at %s %d/%d/%d", seq.ErrStaleEra, b.N, b.R, b.W, first.client.Addr(), a.N, a.R, a.W)
	case !a.Mapping.Extends(b.Mapping) && !b.Mapping.Extends(a.Mapping):
		return fmt.Errorf("%w: it differs from that of the store at %s", seq.ErrBadMapping, first.client.Addr())
	case first.bound() && s.bound() && b.Ref.Members == a.Ref.Members && b.Ref != a.Ref:
		return fmt.Errorf("%w: bound to %v, the store at %s to %v", seq.ErrStaleEra, b.Members, first.client.Addr(), a.Members)
	}
	if err := a.Incarnation.Check(b.Incarnation); err != nil {
		return fmt.Errorf("%w; that is of the store at %s", err, first.client.Addr())
	}
	return nil
}

// oddities are the reasons of the odd stores.
func oddities(stores []*candidate) (errs []error) {
	for _, s := range stores {
		if s.odd != nil {
			errs = append(errs, s.odd)
		}
	}
	return errs
}

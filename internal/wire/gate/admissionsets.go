package gate

import (
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
)

// pool is what is in work for one of several Sets.
type pool struct {
	inWork       int64
	by           map[*share]int64 // of inWork, by caller
	full, shared error            // errors beyond its bound; nil until first used
}

// forSet is what a call in work has of one Set.
type forSet struct {
	set     int
	refused error // why it has no place there
	left    bool
}

// NameSets sets how errors name a Set that is full. Call it before the first call of Enter.
func (a *Admission) NameSets(nameOf func(set int) string) { a.nameOf = nameOf }

// enterSets gives a call its places at Sets. It counts whole at each Set, because its memory is held until
// the last Set has answered. If no Set has room, the error is a Set's. Needs mu.
func (a *Admission) enterSets(p *Place, sets []int) (err error) {
	p.sets = make([]forSet, len(sets))
	room := false
	for i, set := range sets {
		one := forSet{set: set, refused: a.refusalOf(set, p)}
		if one.left = one.refused != nil; one.left {
			err = one.refused
		}
		room = room || !one.left
		p.sets[i] = one
	}
	if !room {
		return err
	}
	if err != nil {
		a.refused.Add(1)
	}
	for _, one := range p.sets {
		if one.left {
			continue
		}
		in := a.sets[one.set]
		if in == nil {
			in = &pool{by: map[*share]int64{}}
			a.sets[one.set] = in
		}
		in.inWork += p.cost
		in.by[p.of] += p.cost
	}
	return nil
}

// refusalOf is why a call has no place at a Set; a Set without calls takes one of any size.
// Needs mu.
func (a *Admission) refusalOf(set int, p *Place) error {
	in := a.sets[set]
	if in == nil {
		return nil
	}
	limit, sum, own, sharers := a.bound.limit/2, in.inWork+p.cost, in.by[p.of], int64(len(in.by))
	switch {
	case sum > limit:
		if in.full == nil {
			in.full = fmt.Errorf("Set %s: %w: half of the keys that may be in work are for it", a.nameOf(set), seq.ErrOverloaded)
		}
		return in.full
	case own > 0 && !below(sum, own+p.cost, limit, sharers):
		if in.shared == nil {
			in.shared = fmt.Errorf("Set %s: %w: a quarter of the keys that may be in work are for it, and this caller has its share of them", a.nameOf(set), seq.ErrOverloaded)
		}
		return in.shared
	}
	return nil
}

// leaveSet takes a call from those for a Set. Needs mu.
func (a *Admission) leaveSet(p *Place, one *forSet) {
	if one.left {
		return
	}
	one.left = true
	in := a.sets[one.set]
	if in.by[p.of] -= p.cost; in.by[p.of] == 0 {
		delete(in.by, p.of)
	}
	if in.inWork -= p.cost; in.inWork == 0 {
		delete(a.sets, one.set)
	}
}

// Refused returns seq.ErrOverloaded if the call was not let in for a Set, and nil otherwise.
func (p *Place) Refused(set int) error {
	for i := range p.sets {
		if p.sets[i].set == set {
			return p.sets[i].refused
		}
	}
	return nil
}

// Answered ends the call for one of its Sets: what is left of it waits for others.
func (p *Place) Answered(set int) {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	for i := range p.sets {
		if p.sets[i].set == set {
			p.in.leaveSet(p, &p.sets[i])
		}
	}
}

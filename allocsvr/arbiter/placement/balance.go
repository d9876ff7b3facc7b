package placement

import (
	"cmp"
	"slices"

	"github.com/seqsvr/seqsvr/seq"
)

// balance gives sections to nodes that hold less than half of their fair share and have been alive for long
// enough. Such a node gets up to its share, from nodes that hold more than theirs. Between half and the
// whole share nothing moves. Because of this margin, two views that differ a little do not pass sections
// back and forth.
//
// A move lowers the sum over all nodes of |held - fair|, so plans end.
func (p *planner) balance() {
	if p.makeshift {
		return // nodes that are drained or leave hold what they must, and are given nothing for balance
	}
	b := balancer{planner: p}
	b.weigh()
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.fit && n.aliveFor >= p.in.Dwell && 2*b.held[i] < b.fair[i] && b.lacks(int16(i)) {
			b.takers = append(b.takers, int16(i))
		}
	}
	if len(b.takers) == 0 {
		return
	}
	b.fillPools()
	for budget := p.in.Budget; budget > 0 && b.moveOne(); budget-- {
	}
}

// balancer is the state of one balance. The slices held and fair are indexed by node and count sections:
// sum(held) == sum(fair) == all sections.
type balancer struct {
	*planner
	held, fair []float64
	takers     []int16
	pools      map[[2]int16][]seq.SectionID // by taker and giver, the best for the taker last
	moved      map[seq.SectionID]bool
}

func (b *balancer) weigh() {
	b.held, b.fair = make([]float64, len(b.nodes)), make([]float64, len(b.nodes))
	total := 0.0
	for _, n := range b.nodes {
		if n.fit {
			total += n.weight
		}
	}
	for i, n := range b.nodes {
		if n.fit {
			b.fair[i] = float64(len(b.next.Sections)) * n.weight / total
		}
	}
	for _, s := range b.next.Sections {
		b.held[s.Owner]++
	}
}

// lacks reports whether node i stays within its share with one section more.
func (b *balancer) lacks(i int16) bool { return b.held[i]+1 <= b.fair[i] }

func (b *balancer) spares(i int16) bool { return b.held[i] > b.fair[i] }

// fillPools ranks, for each taker, the sections that each giver may lose. First come the sections that
// rendezvous hashing would give to the taker, then the sections where the taker is second, and so on.
func (b *balancer) fillPools() {
	type candidate struct {
		id    seq.SectionID
		rank  int
		score float64
	}
	candidates := map[[2]int16][]candidate{}
	scores := make([]float64, len(b.nodes))
	for i, s := range b.next.Sections {
		id := seq.SectionID(i)
		if _, pinned := b.next.Pins[id]; pinned || !b.spares(s.Owner) {
			continue
		}
		for k := range b.nodes {
			scores[k] = 0 // below every score of a fit node
			if b.nodes[k].fit {
				scores[k] = score(&b.nodes[k], id)
			}
		}
		for _, t := range b.takers {
			c := candidate{id: id, score: scores[t]}
			for _, other := range scores {
				if other > c.score {
					c.rank++
				}
			}
			way := [2]int16{t, s.Owner}
			candidates[way] = append(candidates[way], c)
		}
	}
	b.pools, b.moved = map[[2]int16][]seq.SectionID{}, map[seq.SectionID]bool{}
	for way, list := range candidates {
		slices.SortFunc(list, func(x, y candidate) int {
			return cmp.Or(cmp.Compare(y.rank, x.rank), cmp.Compare(x.score, y.score), cmp.Compare(y.id, x.id))
		})
		ids := make([]seq.SectionID, len(list))
		for i, c := range list {
			ids[i] = c.id
		}
		b.pools[way] = ids
	}
}

// moveOne moves the best section from the fullest node to the emptiest taker. It returns false if nothing
// more can be moved.
func (b *balancer) moveOne() bool {
	takers := slices.DeleteFunc(slices.Clone(b.takers), func(t int16) bool { return !b.lacks(t) })
	slices.SortFunc(takers, func(x, y int16) int {
		return cmp.Or(cmp.Compare(b.held[x]/b.fair[x], b.held[y]/b.fair[y]), b.byName(x, y))
	})
	for _, taker := range takers {
		giver, id := b.fullest(taker)
		if giver == seq.NoNode {
			continue
		}
		b.moved[id] = true
		b.held[giver]--
		b.held[taker]++
		b.place(id, taker)
		return true
	}
	return false
}

// fullest returns the node furthest above its share that has a section for the taker, and that section. If
// there is none, it returns NoNode.
func (b *balancer) fullest(taker int16) (giver int16, id seq.SectionID) {
	giver = seq.NoNode
	for i := range b.nodes {
		g := int16(i)
		way := [2]int16{taker, g}
		pool := b.pools[way]
		for len(pool) > 0 && b.moved[pool[len(pool)-1]] {
			pool = pool[:len(pool)-1] // went to another taker
		}
		b.pools[way] = pool
		if !b.spares(g) || len(pool) == 0 {
			continue
		}
		above := cmp.Compare(b.held[g]-b.fair[g], surplus(b, giver))
		if giver == seq.NoNode || above > 0 || above == 0 && b.byName(g, giver) < 0 {
			giver, id = g, pool[len(pool)-1]
		}
	}
	return giver, id
}

func surplus(b *balancer, i int16) float64 {
	if i == seq.NoNode {
		return 0
	}
	return b.held[i] - b.fair[i]
}

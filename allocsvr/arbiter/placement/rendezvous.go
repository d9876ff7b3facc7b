package placement

import (
	"math"
	"strings"

	"github.com/seqsvr/seqsvr/seq"
)

// Weighted rendezvous hashing: every node draws u in (0,1) for a section from a
// hash of both, and the largest -weight/ln(u) wins. A node then wins in proportion
// to its weight, and one that goes or comes moves only what it wins itself.

// score of a node for a section; larger is better.
func score(n *node, id seq.SectionID) float64 {
	const bits = 52 // u = (0..2^52-1 + 1/2) / 2^52 is exact in a float64, never 0 or 1
	h := mix(n.hash ^ mix(uint64(id)))
	u := (float64(h>>(64-bits)) + 0.5) / (1 << bits)
	return -n.weight / math.Log(u)
}

// mix is the finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// best returns the node that wins the section among those that may take part, or NoNode. Equal
// scores go to the lower name, so that the order in which nodes joined has no say.
func (p *planner) best(id seq.SectionID, may func(int16) bool) int16 {
	var winner int16 = seq.NoNode
	var top float64
	for i := range p.nodes {
		if !may(int16(i)) {
			continue
		}
		s := score(&p.nodes[i], id)
		if winner == seq.NoNode || s > top || s == top && p.byName(int16(i), winner) < 0 {
			winner, top = int16(i), s
		}
	}
	return winner
}

func (p *planner) byName(a, b int16) int {
	return strings.Compare(p.next.Nodes[a].Name, p.next.Nodes[b].Name)
}

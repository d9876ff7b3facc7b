package placement

import (
	"slices"

	"github.com/seqsvr/seqsvr/seq"
)

// assign gives every section a fit owner and fit standbys, leaving what can stay.
func (p *planner) assign() {
	index := make(map[string]int16, len(p.next.Nodes))
	for i, n := range p.next.Nodes {
		index[n.Name] = int16(i)
	}
	for i := range p.next.Sections {
		id := seq.SectionID(i)
		p.place(id, p.owner(id, index))
	}
}

// owner of a section. A dead or drained owner is followed by the node that serves the
// section already, so that the table follows a takeover instead of undoing it.
func (p *planner) owner(id seq.SectionID, index map[string]int16) int16 {
	if name, ok := p.next.Pins[id]; ok {
		if i, known := index[name]; known && p.fit(i) {
			return i
		}
	}
	if p.first || p.in.Force {
		return p.best(id, p.fit)
	}
	old := p.before[id]
	if p.fit(old.Owner) {
		return old.Owner
	}
	if int(id) < len(p.in.Owners) {
		if i, known := index[p.in.Owners[id]]; known && p.fit(i) {
			return i
		}
	}
	if p.fit(old.Standby) {
		return old.Standby
	}
	if p.fit(old.Standby2) {
		return old.Standby2
	}
	return p.best(id, p.fit)
}

// place makes owner the owner, and chooses standbys in zones apart where there are such.
func (p *planner) place(id seq.SectionID, owner int16) {
	chosen := [3]int16{owner, seq.NoNode, seq.NoNode}
	for n := 1; n < len(chosen); n++ {
		if chosen[n] = p.standby(id, chosen[:n]); chosen[n] == seq.NoNode {
			break
		}
	}
	p.next.Sections[id] = seq.Placement{Owner: chosen[0], Standby: chosen[1], Standby2: chosen[2]}
}

// standby returns the node to follow those that are chosen: of those in a zone apart from theirs,
// or else of all, one that may stay, or else the next by rendezvous.
func (p *planner) standby(id seq.SectionID, chosen []int16) int16 {
	free := func(i int16) bool { return p.fit(i) && !slices.Contains(chosen, i) }
	elsewhere := func(i int16) bool {
		together := func(c int16) bool { return !seq.Apart(p.next.Nodes[i].Zone, p.next.Nodes[c].Zone) }
		return free(i) && !slices.ContainsFunc(chosen, together)
	}
	for _, may := range []func(int16) bool{elsewhere, free} {
		if i := p.stays(id, len(chosen), may); i != seq.NoNode {
			return i
		}
		if i := p.best(id, may); i != seq.NoNode {
			return i
		}
	}
	return seq.NoNode
}

// stays returns a former standby of the section that may stand by again, or NoNode. With zones,
// nodes that have been alive for long enough come in by rendezvous. Otherwise a zone that fell
// away and is back would stand by for nothing, and the other zones would bear the next loss.
func (p *planner) stays(id seq.SectionID, at int, may func(int16) bool) int16 {
	if p.first || p.in.Force {
		return seq.NoNode
	}
	old := p.before[id].Candidates()
	if p.zoned {
		steady := func(i int16) bool { return may(i) && (i == old[at] || p.nodes[i].aliveFor >= p.in.Dwell) }
		if i := p.best(id, steady); i != seq.NoNode {
			return i
		}
	}
	for _, i := range old[1:] {
		if may(i) {
			return i
		}
	}
	return seq.NoNode
}

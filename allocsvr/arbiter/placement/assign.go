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
		return p.best(id)
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
	return p.best(id)
}

// place makes owner the owner. Standbys stay while they are fit and distinct; the
// places left free go to the next ones by rendezvous.
func (p *planner) place(id seq.SectionID, owner int16) {
	chosen := [3]int16{owner, seq.NoNode, seq.NoNode}
	n := 1
	if !p.first && !p.in.Force {
		for _, s := range []int16{p.before[id].Standby, p.before[id].Standby2} {
			if p.fit(s) && !slices.Contains(chosen[:n], s) {
				chosen[n] = s
				n++
			}
		}
	}
	for ; n < len(chosen); n++ {
		if chosen[n] = p.best(id, chosen[:n]...); chosen[n] == seq.NoNode {
			break
		}
	}
	p.next.Sections[id] = seq.Placement{Owner: chosen[0], Standby: chosen[1], Standby2: chosen[2]}
}

package placement

import (
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/seq"
)

// group is the sections that went the same way for the same reason.
type group struct {
	from, to int16
	why      string
}

// tally counts sections and remembers the first, to name it when it is the only one.
type tally struct {
	n     int
	first seq.SectionID
}

func (t *tally) add(id seq.SectionID) {
	if t.n == 0 {
		t.first = id
	}
	t.n++
}

func (t *tally) String() string {
	if t.n == 1 {
		return fmt.Sprintf("section %d", t.first)
	}
	return fmt.Sprintf("%d sections", t.n)
}

// explain compares what was with what will be, and notes the decisions in an order
// that depends on the tables only.
func (p *planner) explain() {
	all := &tally{n: p.in.Sections}
	if p.first {
		p.changes = nil // every node has joined
		p.note(KindTable, all.String(), fmt.Sprintf("first placement over %d live nodes", p.live()))
		return
	}
	if p.in.Force {
		p.note(KindRebalance, all.String(), fmt.Sprintf("an operator asked for it; placed afresh over %d live nodes", p.live()))
	}
	p.explainLost()

	var order []group
	moves := map[group]*tally{}
	standbys := &tally{}
	for i, now := range p.next.Sections {
		id, old := seq.SectionID(i), p.before[i]
		switch {
		case now.Owner != old.Owner:
			g := group{from: old.Owner, to: now.Owner, why: p.why(id, old.Owner, now.Owner)}
			if moves[g] == nil {
				moves[g] = &tally{}
				order = append(order, g)
			}
			moves[g].add(id)
		case now != old:
			standbys.add(id)
		}
	}
	for _, g := range order {
		p.note(KindMove, moves[g].String(), fmt.Sprintf("from %s to %s: %s", p.name(g.from), p.name(g.to), g.why))
	}
	if standbys.n > 0 {
		p.note(KindStandby, standbys.String(), "standbys gone or in their owner's zone, or places free that a live node can fill")
		if p.in.Force {
			p.changes[len(p.changes)-1].Reason = "placed afresh"
		}
	}
}

// why a section left one owner for another.
func (p *planner) why(id seq.SectionID, from, to int16) string {
	pin, pinned := p.next.Pins[id]
	switch {
	case pinned && pin == p.name(to):
		return "pinned there"
	case p.in.Force:
		return "placed afresh"
	case from == seq.NoNode:
		return "it had no owner"
	case !p.nodes[from].live:
		return p.name(from) + " is not live"
	case p.next.Nodes[from].Drained:
		return p.name(from) + " is drained"
	case !p.nodes[from].fit:
		return p.name(from) + " leaves"
	default:
		return p.name(to) + " held less than half of its share"
	}
}

// explainLost tells of the nodes that had places and have none any more because
// they are not live.
func (p *planner) explainLost() {
	owned, stood := references(p.before, len(p.nodes))
	ownedNow, stoodNow := references(p.next.Sections, len(p.nodes))
	for i := range p.nodes {
		if p.nodes[i].live || owned[i]+stood[i] == 0 || ownedNow[i]+stoodNow[i] > 0 {
			continue
		}
		p.note(KindLost, p.next.Nodes[i].Name, fmt.Sprintf("not live; owner of %d sections and standby of %d", owned[i], stood[i]))
	}
}

// forget removes the nodes that nothing speaks for any more and renumbers the
// rest. While losses of the last minute count, every node stays: the share that was
// lost must be taken of all, not of those that are left.
func (p *planner) forget() {
	if p.in.LostWithinMinute > 0 {
		return
	}
	pinned := map[string]bool{}
	for _, name := range p.next.Pins {
		pinned[name] = true
	}
	had, hadStood := references(p.before, len(p.nodes))
	owned, stood := references(p.next.Sections, len(p.nodes))
	remap := make([]int16, len(p.nodes))
	kept := p.next.Nodes[:0]
	for i, n := range p.next.Nodes {
		if p.nodes[i].live || n.Drained || pinned[n.Name] || owned[i]+stood[i] > 0 {
			remap[i] = int16(len(kept))
			kept = append(kept, n)
			continue
		}
		remap[i] = seq.NoNode // referenced by nothing, so never looked up
		if had[i]+hadStood[i] == 0 {
			p.note(KindLost, n.Name, "not live and without sections; removed from the table")
		}
	}
	if len(kept) == len(remap) {
		return
	}
	p.next.Nodes = slices.Clip(kept)
	at := func(i int16) int16 {
		if i == seq.NoNode {
			return seq.NoNode
		}
		return remap[i]
	}
	for id, s := range p.next.Sections {
		p.next.Sections[id] = seq.Placement{Owner: at(s.Owner), Standby: at(s.Standby), Standby2: at(s.Standby2)}
	}
}

// references counts, by node, the sections owned and the sections stood by for.
func references(sections []seq.Placement, nodes int) (owned, stood []int) {
	owned, stood = make([]int, nodes), make([]int, nodes)
	for _, s := range sections {
		for k, i := range s.Candidates() {
			switch {
			case i == seq.NoNode:
			case k == 0:
				owned[i]++
			default:
				stood[i]++
			}
		}
	}
	return owned, stood
}

func (p *planner) live() int {
	n := 0
	for i := range p.nodes {
		if p.nodes[i].live {
			n++
		}
	}
	return n
}

func (p *planner) name(i int16) string {
	if i == seq.NoNode {
		return "nobody"
	}
	return p.next.Nodes[i].Name
}

package seq

import (
	"fmt"
	"slices"
)

// NoNode stands in a Placement where there is no owner or standby.
const NoNode = -1

// Node is an AllocSvr as the route table knows it.
type Node struct {
	Name    string  `json:"name"`
	Addr    string  `json:"addr"` // gRPC address for callers and peers
	Session Session `json:"session"`
	Weight  uint32  `json:"weight"` // share of the sections, 100 is normal
	Drained bool    `json:"drained,omitempty"`
	Leaving Session `json:"leaving,omitempty"` // the session that is leaving in order, or zero
	Zone    string  `json:"zone,omitempty"`    // the failure zone of the node; empty if unknown
}

// Takes reports whether the node, alive as that session, may be given sections. A session that has begun to
// leave never may again. The node may as another session.
func (n Node) Takes(s Session) bool { return !n.Drained && n.Leaving != s }

// Placement names the nodes that should serve a section: indices into RouteTable.Nodes, or NoNode.
type Placement struct {
	Owner    int16
	Standby  int16
	Standby2 int16
}

// Candidates returns the nodes to try, in order.
func (p Placement) Candidates() [3]int16 { return [3]int16{p.Owner, p.Standby, p.Standby2} }

// RouteTable is the desired assignment of sections to nodes. It is one document
// on the stores, replaced as a whole by compare-and-swap on Version. Effective
// ownership is in the registers and is a different thing. Immutable once shared.
type RouteTable struct {
	Version  uint64
	Nodes    []Node
	Sections []Placement          // one for each section; sections of new spaces may be missing
	Pins     map[SectionID]string // sections that an operator placed by hand: node name
	Frozen   string               // why the arbiter makes no moves; empty if it may move sections
}

// Owner returns the desired owner of a section. If ok is false, the section has none.
func (t *RouteTable) Owner(id SectionID) (node Node, ok bool) {
	if t == nil || int(id) >= len(t.Sections) {
		return Node{}, false
	}
	i := t.Sections[id].Owner
	if i < 0 || int(i) >= len(t.Nodes) {
		return Node{}, false
	}
	return t.Nodes[i], true
}

// Place returns where a section should be served. If its space is new to the table, it is nowhere.
func (t *RouteTable) Place(id SectionID) Placement {
	if int(id) >= len(t.Sections) {
		return Placement{Owner: NoNode, Standby: NoNode, Standby2: NoNode}
	}
	return t.Sections[id]
}

// Cover makes the table know at least n sections. It reports whether the table changed.
func (t *RouteTable) Cover(n int) bool {
	before := len(t.Sections)
	for id := before; id < n; id++ {
		t.Sections = append(t.Sections, Placement{Owner: NoNode, Standby: NoNode, Standby2: NoNode})
	}
	return len(t.Sections) > before
}

// Index returns the index of a node by name, or NoNode.
func (t *RouteTable) Index(name string) int {
	return slices.IndexFunc(t.Nodes, func(n Node) bool { return n.Name == name })
}

// Clone returns a deep copy, to be changed and proposed as the next version.
func (t *RouteTable) Clone() *RouteTable {
	c := &RouteTable{Version: t.Version, Nodes: slices.Clone(t.Nodes), Sections: slices.Clone(t.Sections), Frozen: t.Frozen}
	if len(t.Pins) > 0 {
		c.Pins = make(map[SectionID]string, len(t.Pins))
		for id, name := range t.Pins {
			c.Pins[id] = name
		}
	}
	return c
}

// Validate checks that every index points to a node and that the table covers the sections
// that the cluster of m was initialised with. Of spaces added later, the table and m may
// each know more than the other.
func (t *RouteTable) Validate(m Mapping) error {
	if n := len(t.Sections); n < m.initial() || n > MaxSections {
		return fmt.Errorf("%w: %d sections, expected %d to %d", ErrBadTable, n, m.initial(), MaxSections)
	}
	names := map[string]bool{}
	for _, n := range t.Nodes {
		if n.Name == "" || names[n.Name] {
			return fmt.Errorf("%w: node name %q empty or twice", ErrBadTable, n.Name)
		}
		names[n.Name] = true
	}
	for id, p := range t.Sections {
		for _, i := range p.Candidates() {
			if i != NoNode && (i < 0 || int(i) >= len(t.Nodes)) {
				return fmt.Errorf("%w: section %d points to node %d of %d", ErrBadTable, id, i, len(t.Nodes))
			}
		}
	}
	for id, name := range t.Pins {
		if int(id) >= len(t.Sections) {
			return fmt.Errorf("%w: pin of unknown section %d to %q", ErrBadTable, id, name)
		}
	}
	return nil
}

package client

import (
	"math"
	"slices"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// view is what calls go by: the mapping, the map of Sets, and the route tables of all Sets with
// the connections to their nodes. A cluster that is alone is one Set. Immutable.
type view struct {
	gen      uint64 // rises with each view
	mapping  seq.Mapping
	sets     sets.Map        // zero: the cluster is alone
	parts    []part          // by the index of the map
	nodes    []*server       // of all parts, one after the other; nil where one has no usable address
	sections []seq.Placement // indices into nodes, by the table of the Set that has the section
}

// part is one Set of a view.
type part struct {
	of     *set
	life   seq.Incarnation // of the Set; not known if no server told it
	routes *seq.RouteTable // nil: not known yet
	nodes  []*server       // of routes
}

// alone says that there is one Set, or that this Client cannot tell them apart.
func (v *view) alone() bool { return len(v.parts) == 1 }

// root is the Set that keeps the map and the tags, and where namespaces are changed.
func (v *view) root() *part { return &v.parts[0] }

// in is the Set that has a section, by the map.
func (v *view) in(id seq.SectionID) *part {
	if v.alone() {
		return &v.parts[0]
	}
	return &v.parts[v.sets.Index(id)]
}

// place is where a section should be served; nowhere if that is not known.
func (v *view) place(id seq.SectionID) seq.Placement {
	if int(id) >= len(v.sections) {
		return nowhere
	}
	return v.sections[id]
}

var nowhere = seq.Placement{Owner: seq.NoNode, Standby: seq.NoNode, Standby2: seq.NoNode}

// owner is the server to ask first for a section; nil if there is none.
func (v *view) owner(id seq.SectionID) *server {
	if int(id) < len(v.sections) {
		if n := v.sections[id].Owner; n >= 0 && int(n) < len(v.nodes) {
			return v.nodes[n]
		}
	}
	return nil
}

// candidates are the owner and the standbys of a section; nil where there is none.
func (v *view) candidates(id seq.SectionID) [1 + standbys]*server {
	return serversAt(v.place(id), v.nodes)
}

// candidates are those of a section in this Set, whichever has it by the map.
func (p *part) candidates(id seq.SectionID) [1 + standbys]*server {
	if p.routes == nil {
		return [1 + standbys]*server{}
	}
	return serversAt(p.routes.Place(id), p.nodes)
}

func serversAt(p seq.Placement, nodes []*server) (out [1 + standbys]*server) {
	for i, n := range p.Candidates() {
		if n >= 0 && int(n) < len(nodes) {
			out[i] = nodes[n]
		}
	}
	return out
}

// router says that a server is known to be a router, which tells of the root's table as a node
// of the root does.
func (v *view) router(s *server) bool {
	root := v.root()
	return s.set() == root.of && root.routes != nil && !slices.Contains(root.nodes, s)
}

// part is a Set's.
func (v *view) part(of *set) *part {
	return &v.parts[slices.IndexFunc(v.parts, func(p part) bool { return p.of == of })]
}

// named is the index of a node of any Set by its name, -1 if it has no connection.
func (v *view) named(node string) int {
	first := 0
	for _, p := range v.parts {
		if at := p.named(node); at >= 0 {
			return first + at
		}
		first += len(p.nodes)
	}
	return -1
}

// named is the index of a node by its name, -1 if it has no connection.
func (p *part) named(node string) int {
	if node == "" || p.routes == nil {
		return -1
	}
	return p.routes.Index(node)
}

// merge puts the tables of all parts together.
func (v *view) merge() {
	if v.alone() && v.parts[0].routes != nil {
		v.nodes, v.sections = v.parts[0].nodes, v.parts[0].routes.Sections
		return
	}
	first, n := make([]int, len(v.parts)), 0
	for i, p := range v.parts {
		first[i] = len(v.nodes)
		v.nodes = append(v.nodes, p.nodes...)
		if p.routes != nil {
			n = max(n, len(p.routes.Sections))
		}
	}
	v.sections = slices.Repeat([]seq.Placement{nowhere}, n)
	for id := range v.sections {
		i := v.sets.Index(seq.SectionID(id))
		if v.parts[i].routes == nil {
			continue
		}
		own := v.parts[i].routes.Place(seq.SectionID(id))
		v.sections[id] = seq.Placement{Owner: behind(first[i], own.Owner), Standby: behind(first[i], own.Standby), Standby2: behind(first[i], own.Standby2)}
	}
}

// behind is the index of a node among those of all Sets. There are never as many connections as
// indices, so that none of worth is left out.
func behind(first int, n int16) int16 {
	if n < 0 || first+int(n) > math.MaxInt16 {
		return seq.NoNode
	}
	return int16(first + int(n))
}

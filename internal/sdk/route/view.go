package route

import (
	"math"
	"slices"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// View is what calls go by: the mapping, the map of Sets, and the route tables of all Sets with
// the connections to their nodes. A cluster that is alone is one Set. Immutable.
type View struct {
	Gen      uint64 // rises with each view
	Mapping  seq.Mapping
	Sets     sets.Map        // zero: the cluster is alone
	Parts    []Part          // by the index of the map
	Nodes    []*Server       // of all parts, one after the other; nil where one has no usable address
	sections []seq.Placement // indices into nodes, by the table of the Set that has the section
}

// Part is one Set of a View.
type Part struct {
	Of     *Set
	Life   seq.Incarnation // of the Set; not known if no server told it
	Routes *seq.RouteTable // nil if not known yet
	Nodes  []*Server       // of Routes
}

// NewView puts the tables of all parts together, which are in the order of the map.
func NewView(gen uint64, mapping seq.Mapping, m sets.Map, parts []Part) *View {
	v := &View{Gen: gen, Mapping: mapping, Sets: m, Parts: parts}
	v.merge()
	return v
}

// Alone says that there is one Set, or that this Client cannot tell them apart.
func (v *View) Alone() bool { return len(v.Parts) == 1 }

// Root is the Set that keeps the map and the tags, and where namespaces are changed.
func (v *View) Root() *Part { return &v.Parts[0] }

// In is the Set that has a section, by the map.
func (v *View) In(id seq.SectionID) *Part {
	if v.Alone() {
		return &v.Parts[0]
	}
	return &v.Parts[v.Sets.Index(id)]
}

// Place is where a section should be served; nowhere if that is not known.
func (v *View) Place(id seq.SectionID) seq.Placement {
	if int(id) >= len(v.sections) {
		return nowhere
	}
	return v.sections[id]
}

var nowhere = seq.Placement{Owner: seq.NoNode, Standby: seq.NoNode, Standby2: seq.NoNode}

// Owner is the server to ask first for a section; nil if there is none.
func (v *View) Owner(id seq.SectionID) *Server {
	if int(id) < len(v.sections) {
		if n := v.sections[id].Owner; n >= 0 && int(n) < len(v.Nodes) {
			return v.Nodes[n]
		}
	}
	return nil
}

// Candidates are the owner and the standbys of a section; nil where there is none.
func (v *View) Candidates(id seq.SectionID) [1 + Standbys]*Server {
	return serversAt(v.Place(id), v.Nodes)
}

// Candidates returns the section's owner and standbys in this Set, whatever the map says.
func (p *Part) Candidates(id seq.SectionID) [1 + Standbys]*Server {
	if p.Routes == nil {
		return [1 + Standbys]*Server{}
	}
	return serversAt(p.Routes.Place(id), p.Nodes)
}

func serversAt(p seq.Placement, nodes []*Server) (out [1 + Standbys]*Server) {
	for i, n := range p.Candidates() {
		if n >= 0 && int(n) < len(nodes) {
			out[i] = nodes[n]
		}
	}
	return out
}

// Router says that a server is known to be a router, which tells of the root's table as a node
// of the root does.
func (v *View) Router(s *Server) bool {
	root := v.Root()
	return s.Set() == root.Of && root.Routes != nil && !slices.Contains(root.Nodes, s)
}

// Part is a Set's.
func (v *View) Part(of *Set) *Part {
	return &v.Parts[slices.IndexFunc(v.Parts, func(p Part) bool { return p.Of == of })]
}

// Named is the index of a node of any Set by its name, -1 if it has no connection.
func (v *View) Named(node string) int {
	first := 0
	for _, p := range v.Parts {
		if at := p.Named(node); at >= 0 {
			return first + at
		}
		first += len(p.Nodes)
	}
	return -1
}

// Named is the index of a node by its name, -1 if it has no connection.
func (p *Part) Named(node string) int {
	if node == "" || p.Routes == nil {
		return -1
	}
	return p.Routes.Index(node)
}

// merge puts the tables of all parts together.
func (v *View) merge() {
	if v.Alone() && v.Parts[0].Routes != nil {
		v.Nodes, v.sections = v.Parts[0].Nodes, v.Parts[0].Routes.Sections
		return
	}
	first, n := make([]int, len(v.Parts)), 0
	for i, p := range v.Parts {
		first[i] = len(v.Nodes)
		v.Nodes = append(v.Nodes, p.Nodes...)
		if p.Routes != nil {
			n = max(n, len(p.Routes.Sections))
		}
	}
	v.sections = slices.Repeat([]seq.Placement{nowhere}, n)
	for id := range v.sections {
		i := v.Sets.Index(seq.SectionID(id))
		if v.Parts[i].Routes == nil {
			continue
		}
		own := v.Parts[i].Routes.Place(seq.SectionID(id))
		v.sections[id] = seq.Placement{Owner: behind(first[i], own.Owner), Standby: behind(first[i], own.Standby), Standby2: behind(first[i], own.Standby2)}
	}
}

// behind returns the index of a Set's node among the nodes of all Sets. An index that does not fit becomes
// NoNode. That loses nothing, because there are fewer connections than indices.
func behind(first int, n int16) int16 {
	if n < 0 || first+int(n) > math.MaxInt16 {
		return seq.NoNode
	}
	return int16(first + int(n))
}

package client

import (
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Sets is what a Client knows of the Sets that divide the sections.
type Sets struct {
	Map sets.Map // zero if the cluster is alone; its Moves as of that version
	All []Set    // in the order of the map, the root first; a cluster that is alone is one without a name
}

// Set is one of them, as the Client sees it.
type Set struct {
	Name      string
	ClusterID string
	// Incarnation is the life of the cluster that the Client holds to; not known if no server told it.
	Incarnation seq.Incarnation
	Addrs       []string        // of AllocSvr, as the map has them
	Sections    int             // that it has by the map
	Routes      *seq.RouteTable // nil if not known yet; read only
	Away        error           // error of calls for its sections while no AllocSvr that can be reached has a quorum, or none can be reached; else nil
}

// Of is the Set that has a section, by the map; zero before the first route table.
func (s Sets) Of(id seq.SectionID) Set {
	if len(s.All) == 0 {
		return Set{}
	}
	return s.All[min(s.Map.Index(id), len(s.All)-1)]
}

// Sets are the Sets of now, for tools and metrics; none before the first route table. With
// Config.Indirect their tables are not known.
func (c *Client) Sets() Sets {
	v := c.calls.Table().View()
	if v == nil {
		return Sets{}
	}
	out := Sets{Map: v.Sets}
	if len(v.Sets.Sets) == 0 {
		of := v.Root().Of
		return Sets{All: []Set{{ClusterID: of.ID(), Incarnation: v.Root().Life, Sections: v.Mapping.Sections(), Routes: v.Root().Routes, Away: of.Care.Reason()}}}
	}
	for i, one := range v.Sets.Sets {
		s := Set{Name: one.Name, ClusterID: one.Cluster, Addrs: one.Addrs}
		if i < len(v.Parts) {
			s.Incarnation = v.Parts[i].Life
		}
		if !v.Alone() || !c.cfg.Indirect {
			s.Routes, s.Away = v.Parts[i].Routes, v.Parts[i].Of.Care.Reason()
		}
		out.All = append(out.All, s)
	}
	for id := range v.Mapping.Sections() {
		out.All[v.Sets.Index(seq.SectionID(id))].Sections++
	}
	return out
}

package clienttest

import (
	"maps"
	"slices"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Sets are clusters that divide the sections of one mapping. For one goroutine.
type Sets struct {
	All []*Cluster // the root first, which has all sections at the start

	m sets.Map
}

// setState is what a cluster knows of the others.
type setState struct {
	name  string                       // empty if the cluster is alone
	known sets.Map                     // what its nodes tell callers
	gone  map[seq.SectionID]whereabout // sections that another Set has; never modified
}

// whereabout is where a NOT_OWNER points.
type whereabout struct{ name, addr string }

// StartSets runs so many clusters of n nodes as there are names, the first being the root, with one
// AllocSvr behind all of them. All know the same map, which has addresses of all.
func StartSets(t testing.TB, names []string, n int, spaces ...seq.Space) *Sets {
	t.Helper()
	m, err := seq.NewMapping(spaces...)
	if err != nil {
		t.Fatal(err)
	}
	back := startBackend(t, ClusterID, m)
	s := &Sets{m: sets.Map{Version: 1}}
	for _, name := range names {
		c := start(t, "cluster-"+name, n, back, m)
		c.set.name = name
		s.All = append(s.All, c)
		s.m.Sets = append(s.m.Sets, sets.Set{Name: name, Cluster: c.ID, Addrs: c.Addrs()})
	}
	size := s.All[0].Mapping.Sections()
	s.m.In, s.m.By, s.m.Ceilings = make([]uint16, size), make([]uint64, size), make([]uint64, size)
	for i := range s.All[1:] {
		for id := range size {
			s.Say(i+1, seq.SectionID(id), 0, true)
		}
	}
	s.Tell(s.everybody()...)
	return s
}

func (s *Sets) everybody() (all []int) {
	for i := range s.All {
		all = append(all, i)
	}
	return all
}

// Say has the nodes of a Set answer that another one has a section, and, if asked for, where its
// owner is; of itself, that it has it.
func (s *Sets) Say(of int, id seq.SectionID, has int, addr bool) {
	where := whereabout{name: s.m.Sets[has].Name}
	if c := s.All[has]; addr {
		where.addr = c.Nodes[c.Owner(id)].Addr()
	}
	c := s.All[of]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set.gone = maps.Clone(c.set.gone)
	if c.set.gone == nil {
		c.set.gone = map[seq.SectionID]whereabout{}
	}
	if delete(c.set.gone, id); of != has {
		c.set.gone[id] = where
	}
}

// Move gives sections to another Set. The AllocSvr behind both keeps their counters. The Set that had them says where they
// are; the map, which Tell shows, notes it.
func (s *Sets) Move(from, to int, ids ...seq.SectionID) {
	for _, id := range ids {
		s.Seal(from, to, id)
		s.Arrive(from, to, id)
	}
}

// Seal is the first half of a Move: from then on neither Set serves the section.
func (s *Sets) Seal(from, to int, id seq.SectionID) { s.Say(from, id, to, true) }

// Arrive is the second half.
func (s *Sets) Arrive(_, to int, id seq.SectionID) {
	s.Say(to, id, to, false)
	s.m.In = slices.Clone(s.m.In)
	s.m.In[id] = uint16(to)
}

// Note has the map say, wrongly perhaps, that a Set has a section.
func (s *Sets) Note(id seq.SectionID, has int) {
	s.m.In = slices.Clone(s.m.In)
	s.m.In[id] = uint16(has)
}

// Forget takes the addresses of a Set out of the map.
func (s *Sets) Forget(set int) {
	s.m.Sets = slices.Clone(s.m.Sets)
	s.m.Sets[set].Addrs = nil
}

// Tell shows the nodes of some Sets the map as it is, as a newer version.
func (s *Sets) Tell(to ...int) {
	s.m.Version++
	for _, i := range to {
		c := s.All[i]
		c.mu.Lock()
		c.set.known = s.m
		c.mu.Unlock()
	}
}

// Publish is Tell to all.
func (s *Sets) Publish() { s.Tell(s.everybody()...) }

// Alone has a Set not know of the others, as one of before there were any.
func (s *Sets) Alone(set int) {
	c := s.All[set]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set.name, c.set.known = "", sets.Map{}
}

// Kill kills all nodes of a Set.
func (c *Cluster) Kill() {
	for _, n := range c.Nodes {
		n.Kill()
	}
}

// Hang makes all nodes of a Set hang.
func (c *Cluster) Hang() {
	for _, n := range c.Nodes {
		n.Hang()
	}
}

// Resume ends Hang.
func (c *Cluster) Resume() {
	for _, n := range c.Nodes {
		n.Resume()
	}
}

package console

import (
	"maps"
	"slices"
	"strings"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// sectionList is the owner of each section, as columns: there are thousands of rows, each second.
// Nodes and sessions stand there once; the columns have their places, -1 for none.
type sectionList struct {
	Version  uint64   `json:"route_version"`
	Nodes    []string `json:"nodes"`
	NodeSets []string `json:"node_sets"`  // of each node; empty if the cluster is alone
	Zones    []string `json:"node_zones"` // of each node; empty if unknown
	Sessions []string `json:"sessions"`
	Sets     []string `json:"sets"` // empty if the cluster is alone

	Set      []int    `json:"set"`   // that has the section by the map; -1 if the cluster is alone
	Owner    []int    `json:"owner"` // by the stores; of a section whose lease has ended: the node that had it last
	Desired  []int    `json:"desired"`
	Standby  []int    `json:"standby"`
	Standby2 []int    `json:"standby2"`
	Session  []int    `json:"session"`
	Round    []uint64 `json:"round"`
	Max      []uint64 `json:"max"`
	LeftMS   []int64  `json:"left_ms"` // -1: no valid lease
}

// leftGrain rounds what is left of a lease, so that messages repeat themselves and are
// compressed well.
const leftGrain = 50

// place gives each name a number.
type place map[string]int

func (p place) of(name string, list *[]string) int {
	if name == "" {
		return -1
	}
	at, ok := p[name]
	if !ok {
		at = len(*list)
		p[name] = at
		*list = append(*list, name)
	}
	return at
}

// nodeKey tells nodes of the same name in two Sets apart.
func nodeKey(set, node string) string {
	if node == "" {
		return ""
	}
	return set + "/" + node
}

// sectionsOf puts the sections, which come in their order, into columns. Each is shown as the Set tells that has it;
// if that did not answer, it has no owner. zones has the zone of each node by its nodeKey.
func sectionsOf(replies map[string]*pb.LeasesReply, setOf func(seq.SectionID) string, zones map[string]string) *sectionList {
	l, nodes, sessions, sets := &sectionList{Nodes: []string{}, NodeSets: []string{}, Zones: []string{}, Sessions: []string{}, Sets: []string{}}, place{}, place{}, place{}
	names, most := map[string]bool{}, 0
	for set, reply := range replies {
		most, l.Version = max(most, len(reply.GetLeases())), max(l.Version, reply.GetRouteVersion())
		for _, s := range reply.GetLeases() {
			names[nodeKey(set, s.GetDesired())], names[nodeKey(set, s.GetNode())] = true, true
		}
	}
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(names)) { // a node keeps its place, and so its colour
		nodes.of(key, &keys)
	}
	for id := range most {
		set := setOf(seq.SectionID(id))
		var s *pb.LeaseInfo
		if all := replies[set].GetLeases(); id < len(all) {
			s = all[id]
		}
		standbys := append(append([]string{}, s.GetStandbys()...), "", "")
		left := s.GetLeaseLeftMs()
		switch {
		case s == nil:
			left = -1
		case left > 0:
			left -= left % leftGrain
		}
		at := func(node string) int { return nodes.of(nodeKey(set, node), &keys) }
		l.Set = append(l.Set, sets.of(set, &l.Sets))
		l.Owner, l.Desired = append(l.Owner, at(s.GetNode())), append(l.Desired, at(s.GetDesired()))
		l.Standby, l.Standby2 = append(l.Standby, at(standbys[0])), append(l.Standby2, at(standbys[1]))
		l.Session = append(l.Session, sessions.of(survey.SessionText(s.GetSession()), &l.Sessions))
		l.Round = append(l.Round, s.GetRound())
		l.Max = append(l.Max, s.GetMax())
		l.LeftMS = append(l.LeftMS, left)
	}
	for _, key := range keys {
		set, name, _ := strings.Cut(key, "/")
		l.Nodes, l.NodeSets, l.Zones = append(l.Nodes, name), append(l.NodeSets, set), append(l.Zones, zones[key])
	}
	return l
}

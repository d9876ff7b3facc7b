package console

import (
	"maps"
	"slices"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// sectionList is the owner of each section, as columns: there are thousands of rows, each second.
// Nodes and sessions stand there once; the columns have their places, -1 for none.
type sectionList struct {
	Version  uint64   `json:"route_version"`
	Nodes    []string `json:"nodes"`
	Sessions []string `json:"sessions"`

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

// sectionsOf puts the sections, which come in their order, into columns.
func sectionsOf(reply *pb.LeasesReply) *sectionList {
	l, nodes, sessions := &sectionList{Version: reply.GetRouteVersion(), Nodes: []string{}, Sessions: []string{}}, place{}, place{}
	names := map[string]bool{}
	for _, s := range reply.GetLeases() {
		names[s.GetDesired()], names[s.GetNode()] = true, true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) { // a node keeps its place, and so its colour
		nodes.of(name, &l.Nodes)
	}
	for _, s := range reply.GetLeases() {
		standbys := append(append([]string{}, s.GetStandbys()...), "", "")
		left := s.GetLeaseLeftMs()
		if left > 0 {
			left -= left % leftGrain
		}
		l.Owner = append(l.Owner, nodes.of(s.GetNode(), &l.Nodes))
		l.Desired = append(l.Desired, nodes.of(s.GetDesired(), &l.Nodes))
		l.Standby = append(l.Standby, nodes.of(standbys[0], &l.Nodes))
		l.Standby2 = append(l.Standby2, nodes.of(standbys[1], &l.Nodes))
		l.Session = append(l.Session, sessions.of(survey.SessionText(s.GetSession()), &l.Sessions))
		l.Round = append(l.Round, s.GetRound())
		l.Max = append(l.Max, s.GetMax())
		l.LeftMS = append(l.LeftMS, left)
	}
	return l
}

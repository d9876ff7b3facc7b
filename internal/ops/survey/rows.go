package survey

import (
	"strconv"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Event is one decision of an arbiter, a standby or an operator.
type Event struct {
	ID      uint64 `json:"id"`
	UnixMS  int64  `json:"unix_ms"`
	Node    string `json:"node"` // the writer
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Reason  string `json:"reason"`
	Set     string `json:"set,omitempty"` // of the writer; empty if the cluster is alone, or one Set was asked
}

// Events returns the events of a reply, in its order.
func Events(reply *pb.EventsReply) []Event {
	rows := []Event{}
	for _, e := range reply.GetEvents() {
		rows = append(rows, Event{e.GetId(), e.GetUnixMs(), e.GetNode(), e.GetKind(), e.GetSubject(), e.GetReason(), ""})
	}
	return rows
}

// Member is one node: the memberlist view beside the stores' sessions.
type Member struct {
	Name         string `json:"name"`
	Role         string `json:"role"`
	State        string `json:"state"` // alive, dead or left, as memberlist sees it
	SinceUnixMS  int64  `json:"since_unix_ms"`
	Addr         string `json:"addr"`
	Session      string `json:"session"`
	Protocol     uint32 `json:"protocol"`
	RouteVersion uint64 `json:"route_version"`
	Desired      uint32 `json:"sections_desired"` // by the route table
	Owned        uint32 `json:"sections_owned"`   // attached at the stores
	LeaseLeftMS  int64  `json:"lease_left_ms"`    // -1: none
	Drained      bool   `json:"drained"`
	Zone         string `json:"zone"`          // empty if unknown
	Set          string `json:"set,omitempty"` // empty if the cluster is alone
}

// Members returns the members of a reply, by role and name.
func Members(reply *pb.StatusReply) []Member {
	rows := []Member{}
	for _, m := range reply.GetMembers() {
		rows = append(rows, Member{m.GetName(), m.GetRole(), m.GetState(), m.GetSinceUnixMs(), m.GetAddr(), SessionText(m.GetSession()), m.GetProtocol(),
			m.GetRouteVersion(), m.GetSectionsDesired(), m.GetSectionsOwned(), m.GetLeaseLeftMs(), m.GetDrained(), m.GetZone(), ""})
	}
	return sortedBy(rows, func(r Member) string { return r.Role + "/" + r.Name })
}

// Members returns the members of all Sets, in the order of the map.
func (s *Survey) Members() []Member {
	rows := []Member{}
	for _, of := range s.Each() {
		for _, m := range Members(of.View()) {
			m.Set = of.Cluster.Set
			rows = append(rows, m)
		}
	}
	return rows
}

// CounterID is a UID or a string key as it is shown. The UID that a key hashes to is in no
// output: it may rest on a secret.
type CounterID struct {
	UID *uint64 `json:"uid,omitempty"` // nil if Key is set
	Key string  `json:"key,omitempty"`
}

// CounterOf returns the CounterID of a UID.
func CounterOf(uid seq.UID) CounterID { return CounterID{UID: (*uint64)(&uid)} }

// Place returns the UID that decides its section.
func (c CounterID) Place() seq.UID {
	if c.UID != nil {
		return seq.UID(*c.UID)
	}
	return seq.HashKey(c.Key)
}

// Column is the head of its column.
func (c CounterID) Column() string {
	if c.UID == nil {
		return "key"
	}
	return "uid"
}

// String is the UID, or the key.
func (c CounterID) String() string {
	if c.UID == nil {
		return c.Key
	}
	return strconv.FormatUint(*c.UID, 10)
}

// Place is where a UID or a string key is counted.
type Place struct {
	Space string `json:"space"`
	CounterID
	Section  uint32   `json:"section"`
	Set      string   `json:"set,omitempty"` // empty if the cluster is alone
	Owner    string   `json:"owner"`         // empty without an owner
	Addr     string   `json:"addr"`
	Standbys []string `json:"standbys"`
	Zone     string   `json:"zone"`          // of the owner
	Zones    []string `json:"standby_zones"` // one a standby
	Pinned   bool     `json:"pinned"`
	Version  uint64   `json:"route_version"`
}

// Place finds the section of a UID or string key and its desired owner. Keys are placed by
// the public hash, whatever they are counted under.
func (c *Cluster) Place(space *seq.Space, of CounterID) Place {
	id := space.SectionOf(of.Place())
	r := Place{Space: space.Name, CounterID: of, Section: uint32(id), Set: c.Set, Standbys: []string{}, Zones: []string{}, Version: c.Table.Version}
	if owner, ok := c.Table.Owner(id); ok {
		r.Owner, r.Addr, r.Zone = owner.Name, owner.Addr, owner.Zone
	}
	p := c.Table.Place(id)
	for _, i := range []int16{p.Standby, p.Standby2} {
		if i != seq.NoNode {
			r.Standbys, r.Zones = append(r.Standbys, c.Table.Nodes[i].Name), append(r.Zones, c.Table.Nodes[i].Zone)
		}
	}
	_, r.Pinned = c.Table.Pins[id]
	return r
}

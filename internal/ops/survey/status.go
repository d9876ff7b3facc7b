package survey

import (
	"cmp"
	"slices"
	"strings"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Health of a cluster, in one word.
type Health string

// The words.
const (
	Healthy  Health = "healthy"  // all of it serves, all nodes are there
	Degraded Health = "degraded" // all of it serves, but something is missing
	Failed   Health = "failed"   // a part of the UIDs, or all, is not served
)

// Status is what `seqctl status` prints and the console shows. The JSON names are fixed.
type Status struct {
	Health       Health   `json:"health"`   // healthy, degraded or failed
	Problems     []string `json:"problems"` // the worst first
	First        string   `json:"first"`    // the command to give first, with the node unless it is seqctl's; empty if healthy
	Why          string   `json:"why"`      // what that does, or what to think of before
	Notes        []string `json:"notes"`    // what is as an operator wanted it, and worth a reminder
	ClusterID    string   `json:"cluster_id"`
	Set          string   `json:"set"`           // that was asked, which era, incarnation, routes, arbiter, frozen, lease and engine are of; empty if the cluster is alone
	Sets         []Set    `json:"sets"`          // empty if the cluster is alone
	Here         int      `json:"sections_here"` // sections of this Set
	Era          uint64   `json:"era"`
	Incarnation  string   `json:"incarnation"` // cluster id, era and binding; empty if unknown
	RouteVersion uint64   `json:"route_version"`
	Sections     uint32   `json:"sections"` // of all Sets, as the two below
	Unowned      uint32   `json:"sections_unowned"`
	Moving       uint32   `json:"sections_moving"` // between two owners, not among the unowned
	Arbiter      string   `json:"arbiter"`
	Frozen       string   `json:"frozen"`
	LeaseMS      float64  `json:"lease_ms"`
	Required     uint32   `json:"required_protocol"` // of sessions; zero means any
	Engine       string   `json:"engine"`            // that keeps the registers, storesvr or etcd; empty if unknown
	Allocs       []Alloc  `json:"allocs"`
	Stores       []Store  `json:"stores"`
	Routers      []Router `json:"routers"` // that the membership knows
	// Refused is what nodes refused and closed in the last minutes, the most first.
	Refused []Refusal `json:"refused"`
	// Reading is what the AllocSvr keep for readers, by space: those with tickets or watched keys.
	Reading []Reading `json:"reading"`
}

// Refusal counts how often a node refused an address for a reason.
type Refusal struct {
	Role    string `json:"role"` // alloc, store or router
	Node    string `json:"node"`
	Reason  string `json:"reason"`
	Address string `json:"address"` // a host, or other
	Count   uint64 `json:"count"`
}

// Router is one that the membership knows.
type Router struct {
	Name  string `json:"name"`
	Addr  string `json:"addr"`
	State string `json:"state"` // alive, dead or left
	Zone  string `json:"zone"`  // empty if unknown
}

// Alloc is one AllocSvr of the route table.
type Alloc struct {
	Name      string `json:"name"`
	Addr      string `json:"addr"`
	Session   string `json:"session"`
	State     string `json:"state"`  // ready, draining, drained, not ready or no answer
	Reason    string `json:"reason"` // why not ready
	Drained   bool   `json:"drained"`
	Sections  uint32 `json:"sections_owned"`
	Counters  uint64 `json:"counters"` // UIDs in memory
	Memory    uint64 `json:"uid_memory_bytes"`
	Budget    uint64 `json:"uid_memory_budget"` // bytes; zero means no limit
	Folded    uint64 `json:"folded_blocks"`     // of 64 UIDs, dropped since its start to stay within that
	Refused   uint64 `json:"uids_refused"`      // requests for want of memory since its start
	Numbers   uint64 `json:"numbers"`           // handed out since its start
	Steps     uint64 `json:"steps"`
	Takeovers uint64 `json:"takeovers"`
	Handoffs  uint64 `json:"handoffs"`
	Nacks     uint64 `json:"nacks"`
	Version   string `json:"version"`
	Protocol  uint32 `json:"protocol"`      // that it speaks; zero for a build older than the field, or without an answer
	Zone      string `json:"zone"`          // empty if unknown
	Set       string `json:"set,omitempty"` // empty if the cluster is alone

	Tickets        uint64  `json:"tickets_open"`
	TicketsExpired float64 `json:"tickets_expired_per_s"` // by their time, in the last minutes
	Watches        uint64  `json:"watches"`
	WatchedKeys    uint64  `json:"watched_keys"` // each counted once a watch
}

// Store is one that the AllocSvr write to: a StoreSvr, or a member of etcd.
type Store struct {
	Name    string `json:"name"` // empty if the membership does not know it
	UUID    string `json:"uuid"`
	Addr    string `json:"addr"`
	State   string `json:"state"` // voting, unreachable, or why it does not vote
	Boots   uint64 `json:"boot_count"`
	GraceMS int64  `json:"grace_left_ms"`
	Commits uint64 `json:"commits"`

	DiskFree   uint64 `json:"disk_free_bytes"`
	NearlyFull bool   `json:"nearly_full"` // it refuses writes; a member of etcd: it soon will
	Zone       string `json:"zone"`        // empty if unknown
	Protocol   uint32 `json:"protocol"`    // that it speaks; zero for a build older than the field, or without an answer

	Etcd *EtcdMember `json:"etcd,omitempty"` // null for a StoreSvr
	Set  string      `json:"set,omitempty"`  // empty if the cluster is alone
}

// Judge makes the status of what was found.
func (s *Survey) Judge() Status {
	r := Status{ClusterID: s.Cluster.ID, Incarnation: shown(s.Cluster.Incarnation), RouteVersion: s.Cluster.Table.Version, Sections: uint32(s.Cluster.Mapping.Sections()),
		Frozen: s.Cluster.Table.Frozen, Set: s.Cluster.Set, Sets: s.setRows(), Here: s.Cluster.Here(), Problems: []string{}, Notes: s.notes(), Allocs: []Alloc{}, Stores: []Store{}, Routers: []Router{}, Refused: []Refusal{}, Reading: s.reading()}
	byCause := s.troubles()
	var worst []trouble
	r.Health, worst = judge(byCause)
	for _, t := range worst {
		r.Problems = append(r.Problems, t.what)
	}
	if len(byCause) > 0 {
		r.First, r.Why = byCause[0].do, byCause[0].why
	}
	if best := s.View(); best != nil {
		r.Era, r.RouteVersion = best.GetEra(), best.GetRouteVersion()
		r.Engine, r.Required = engineOf(best), requiredProtocol(best)
		r.Arbiter, r.Frozen, r.LeaseMS = best.GetArbiter(), best.GetFrozen(), float64(best.GetLeaseUs())/1000
	}
	for _, of := range s.Each() {
		r.Unowned, r.Moving = r.Unowned+of.unowned(), r.Moving+of.View().GetSectionsMoving()
		r.Allocs, r.Stores, r.Refused = append(r.Allocs, of.allocs()...), append(r.Stores, of.stores()...), append(r.Refused, of.refusals()...)
		for _, m := range sortedBy(of.View().GetMembers(), (*pb.MemberStatus).GetName) {
			if m.GetRole() == "router" && !slices.ContainsFunc(r.Routers, func(known Router) bool { return known.Name == m.GetName() }) {
				r.Routers = append(r.Routers, Router{m.GetName(), m.GetAddr(), m.GetState(), m.GetZone()})
			}
		}
	}
	slices.SortStableFunc(r.Refused, func(a, b Refusal) int { return cmp.Compare(b.Count, a.Count) })
	return r
}

// stores returns the stores of the Set at hand by name; none if nobody tells of them.
func (s *Survey) stores() (out []Store) {
	best := s.View()
	for _, st := range sortedBy(best.GetStores(), (*pb.StoreStatus).GetAddr) {
		state := st.GetState()
		if !st.GetReachable() && !strings.HasPrefix(state, quorum.StateLeftOut) {
			state = "unreachable"
		}
		out = append(out, Store{cmp.Or(st.GetName(), s.storeNames()[st.GetAddr()]), st.GetUuid(), st.GetAddr(), state, st.GetBootCount(), st.GetGraceLeftMs(), st.GetCommits(),
			st.GetDiskFreeBytes(), st.GetNearlyFull(), s.storeZone(st), st.GetProtocol(), etcdMember(st.GetEtcd()), s.Cluster.Set})
	}
	return sortedBy(out, func(st Store) string { return st.Name })
}

// allocs returns the AllocSvr of the Set at hand by name.
func (s *Survey) allocs() (out []Alloc) {
	for _, node := range s.Cluster.Table.Nodes {
		a := Alloc{Name: node.Name, Addr: node.Addr, Session: SessionText(uint64(node.Session)), Drained: node.Drained, Zone: node.Zone, State: allocState(node, s.Replies[node.Name]), Set: s.Cluster.Set}
		if reply := s.Replies[node.Name]; reply != nil {
			a.Reason = reply.GetReason()
			a.Session, a.Sections, a.Counters, a.Numbers = SessionText(reply.GetSession()), reply.GetSectionsOwned(), reply.GetCounters(), reply.GetNumbers()
			a.Steps, a.Takeovers, a.Handoffs = reply.GetSteps(), reply.GetTakeovers(), reply.GetHandoffs()
			a.Memory, a.Budget, a.Folded, a.Refused = reply.GetUidMemoryBytes(), reply.GetUidMemoryBudget(), reply.GetFoldedBlocks(), reply.GetUidsRefused()
			a.Nacks, a.Version, a.Protocol = reply.GetNacks(), reply.GetVersion(), reply.GetProtocol()
			read := reply.GetReading()
			a.Tickets, a.TicketsExpired, a.Watches, a.WatchedKeys = read.GetTickets(), rate(read.GetExpired(), read), read.GetWatches(), read.GetKeys()
		}
		out = append(out, a)
	}
	return sortedBy(out, func(a Alloc) string { return a.Name })
}

// shown is an incarnation for people; empty if it is not known.
func shown(in seq.Incarnation) string {
	if !in.Known() {
		return ""
	}
	return in.String()
}

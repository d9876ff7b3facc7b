package lab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/lab/netlab"
	"github.com/seqsvr/seqsvr/seq"
)

// Scenario is one way to break a cluster, and what is expected of it.
type Scenario struct {
	Name string
	What string // it does, for people
	// Stores, Allocs and Routers are how many nodes of a role a drill of it needs at least.
	Stores, Allocs, Routers int
	Zones                   int // that the nodes must be in at least
	Sets                    int // likewise; what such a scenario needs of nodes is of all Sets together
	// Role of the node that a drill may be told to break. If empty, it cannot be told.
	Role localcluster.Role
	// Needs is what must be there beside processes: NeedNetwork, or something of those who
	// add scenarios. Empty: nothing.
	Needs string
	// Leader: it breaks the leader of etcd, which StoreSvr has not.
	Leader bool
	// Asks: it signals no process, it only asks the Admin service.
	Asks bool
	// Alone: no second scenario may be under way beside it.
	Alone  bool
	Expect Expect
	// Run breaks the cluster, waits, and heals what it broke.
	Run func(ctx context.Context, s *Scene) error
}

// NeedNetwork: each node has a network namespace of its own.
const NeedNetwork = "network namespaces (root, ip, nft)"

// Expect is what is expected of a scenario. That no number comes twice and none is lower
// than one before is expected of all of them.
type Expect struct {
	Refused bool    // there is no quorum for a time, and callers are told so; else no caller of the SDK sees an error
	Others  bool    // Refused holds for callers of one Set, other callers see no error, and the pause is the other callers'
	NoGap   bool    // the cluster skips no number
	Pauses  []Pause // targets of the longest pause on an idle machine; measured, never judged
}

// Pause is a target for clusters with that lease, or for supervised ones.
type Pause struct {
	Lease     time.Duration
	Supervise bool
	Target    time.Duration
}

// String is what is expected, for a table.
func (e Expect) String() string {
	switch {
	case e.Refused:
		return "Unavailable with its reason, then service by itself"
	case e.Others:
		return "no error at other Sets; at its own Unavailable with its name, then service by itself"
	case e.NoGap:
		return "no error, no gap"
	}
	return "no error"
}

// target returns the target of the longest pause, or zero if there is none.
func (e Expect) target(lease time.Duration, supervise bool) time.Duration {
	for _, p := range e.Pauses {
		if p.Supervise == supervise && (supervise || p.Lease == lease) {
			return p.Target
		}
	}
	return 0
}

var moved = Expect{NoGap: true, Pauses: []Pause{{Lease: time.Second, Target: 50 * time.Millisecond}, {Lease: etcdclient.DefaultLease, Target: 50 * time.Millisecond}}}

// everyNode is more nodes than there are of a role.
const everyNode = 999

// Drills lists the scenarios that `seqctl drill` offers, in the order of its --list.
func Drills() []Scenario {
	return []Scenario{
		{Name: "kill-alloc", Allocs: 2, Role: alloc, Run: killAlloc,
			Expect: Expect{Pauses: []Pause{{Lease: time.Second, Target: 1200 * time.Millisecond},
				{Lease: 600 * time.Millisecond, Target: 700 * time.Millisecond}, {Lease: etcdclient.DefaultLease, Target: 3800 * time.Millisecond}, {Supervise: true, Target: 150 * time.Millisecond}}},
			What: "kill -9 the AllocSvr with most sections; its standbys take over when its lease ends (at once with --supervise)"},
		{Name: "pause-alloc", Allocs: 2, Role: alloc, Run: pause(of(1, alloc)),
			What: "SIGSTOP an AllocSvr for half a lease, then for two leases (or once for --pause); woken up it must not answer as the owner"},
		{Name: "restart-alloc", Allocs: 2, Role: alloc, Run: restart(of(1, alloc)), Expect: moved,
			What: "SIGTERM an AllocSvr, which hands its sections over with their counters, and start it again"},
		{Name: "drain-alloc", Allocs: 2, Role: alloc, Asks: true, Alone: true, Run: drain, Expect: moved,
			What: "seqctl drain an AllocSvr, so that its sections move away with their counters, and undrain it"},
		{Name: "kill-store", Stores: 3, Role: store, Run: kill(of(1, store)),
			What: "kill -9 one StoreSvr, or a member of etcd that does not lead, and start it again"},
		{Name: "kill-two-stores", Stores: 3, Run: killQuorum, Expect: Expect{Refused: true},
			What: "kill -9 two StoreSvr, or members of etcd, so that the quorum is gone: Unavailable once the leases have ended; then start one, then the other"},
		{Name: "kill-leader", Stores: 3, Leader: true, Run: kill(leading),
			What: "kill -9 the leader of etcd and start it again; until another is elected no section gets numbers beyond those it has"},
		{Name: "pause-leader", Stores: 3, Leader: true, Run: pause(leading),
			What: "SIGSTOP the leader of etcd for half a lease, then the leader for two leases (or once for --pause)"},
		{Name: "kill-all", Alone: true, Run: kill(of(everyNode, store, alloc, router)), Expect: Expect{Refused: true},
			What: "kill -9 every process at once and start them again; what was answered before must hold"},
		{Name: "kill-zone", Stores: 3, Allocs: 3, Routers: 2, Zones: 3, Alone: true, Run: killZone,
			Expect: Expect{Pauses: []Pause{{Lease: time.Second, Target: 1200 * time.Millisecond},
				{Lease: 600 * time.Millisecond, Target: 700 * time.Millisecond}}},
			What: "kill -9 every process of one of three zones at once; standbys in the others take over when the leases end, and carry the load"},
		{Name: "kill-set", Stores: 2, Allocs: 2, Routers: 1, Sets: 2, Alone: true, Run: killSet,
			Expect: Expect{Others: true, Pauses: []Pause{{Lease: time.Second, Target: 20 * time.Millisecond}}},
			What:   "kill -9 every StoreSvr and AllocSvr of one Set, --set, or the last; its callers are told so by its name, those of the others feel nothing; start it again"},
		{Name: "move-set", Stores: 2, Allocs: 2, Routers: 1, Sets: 2, Asks: true, Run: moveSet,
			Expect: Expect{NoGap: true, Pauses: []Pause{{Lease: time.Second, Target: 100 * time.Millisecond}}},
			What:   "seqctl set move half of the sections of the root to the Set --set, or the last, and back, and half of that one's to the root and back, again and again"},
		{Name: "kill-router", Routers: 2, Role: router, Run: kill(of(1, router)),
			What: "kill -9 a router; half of the callers go to the owners directly, half through the list of routers only"},
		{Name: "rolling-restart", Allocs: 2, Stores: 3, Alone: true, Run: rolling, Expect: Expect{NoGap: true},
			What: "restart every StoreSvr or member of etcd, then every AllocSvr, then every router, one after the other"},
		{Name: "partition-alloc", Allocs: 2, Needs: NeedNetwork, Role: alloc, Run: cut(of(1, alloc), netlab.CutBoth),
			What: "cut an AllocSvr off from everybody for three leases (or --pause), then mend the network"},
		{Name: "partition-store", Stores: 3, Needs: NeedNetwork, Role: store, Run: cut(of(1, store), netlab.CutBoth),
			What: "cut a StoreSvr, or a member of etcd that does not lead, off from everybody for three leases (or --pause), then mend the network"},
		{Name: "partition-leader", Stores: 3, Leader: true, Needs: NeedNetwork, Run: cut(leading, netlab.CutBoth),
			What: "cut the leader of etcd off from everybody for three leases (or --pause), then mend the network"},
		{Name: "one-way", Allocs: 2, Needs: NeedNetwork, Role: alloc, Run: cut(of(1, alloc), netlab.CutIn, netlab.CutOut),
			What: "let an AllocSvr send but not receive for three leases (or --pause), and after that receive but not send"},
	}
}

// Wider lists what breaks more, or in a stranger way: only chance draws these.
func Wider() []Scenario {
	const all = everyNode
	return []Scenario{
		{Name: "kill-all-stores", Alone: true, Run: kill(of(all, store))},
		{Name: "kill-two-allocs", Run: kill(of(2, alloc))},
		{Name: "kill-all-allocs", Alone: true, Run: kill(of(all, alloc))},
		{Name: "kill-starting-alloc", Run: killStarting(of(1, alloc))},
		{Name: "kill-starting-store", Run: killStarting(of(1, store))},
		{Name: "pause-store", Run: pause(of(1, store))},
		{Name: "pause-two-stores", Run: pause(of(2, store))},
		{Name: "pause-two-allocs", Run: pause(of(2, alloc))},
		{Name: "pause-everything", Alone: true, Run: pause(of(all, store, alloc, router))},
		{Name: "restart-store", Run: restart(of(1, store))},
		{Name: "restart-all-allocs", Alone: true, Run: restart(of(all, alloc))},
		{Name: "partition-two-stores", Needs: NeedNetwork, Run: cut(of(2, store), netlab.CutBoth)},
		{Name: "partition-two-allocs", Needs: NeedNetwork, Run: cut(of(2, alloc), netlab.CutBoth)},
		{Name: "one-way-store", Needs: NeedNetwork, Run: cut(of(1, store), netlab.CutIn, netlab.CutOut)},
		{Name: "part-two-allocs", Needs: NeedNetwork, Run: part},
		{Name: "refuse-packets", Needs: NeedNetwork, Run: refuse},
		{Name: "lose-packets", Needs: NeedNetwork, Run: lose},
	}
}

// FindDrill finds one of Drills.
func FindDrill(name string) (Scenario, error) {
	var names []string
	for _, sc := range Drills() {
		if sc.Name == name {
			return sc, nil
		}
		names = append(names, sc.Name)
	}
	return Scenario{}, fmt.Errorf("%w %q: expected one of %s", ErrUnknownDrill, name, strings.Join(names, ", "))
}

// Shaped is the configuration of a drill's own cluster for the scenario: if it needs zones and
// none are named, with some, and a router in each; if it needs Sets, with as many, and so few sections
// that most callers meet a move.
func (sc Scenario) Shaped(cfg localcluster.Config) localcluster.Config {
	if sc.Zones > 0 && len(cfg.Zones) == 0 {
		cfg.Zones, cfg.Routers = drillZones, max(cfg.Routers, len(drillZones))
	}
	if sc.Sets > 0 {
		cfg.Sets, cfg.Sections = max(cfg.Sets, sc.Sets), cmp.Or(cfg.Sections, drillSections)
	}
	return cfg
}

// Fits says whether a cluster of these nodes, on etcd or not, is one for a drill: ErrEngine,
// ErrTooSmall; and whether node and set, if not empty, are what it may be told to break.
func (sc Scenario) Fits(nodes []localcluster.Node, onEtcd bool, node, set string) error {
	of := func(role localcluster.Role) []localcluster.Node {
		return slices.DeleteFunc(slices.Clone(nodes), func(n localcluster.Node) bool { return n.Role != role })
	}
	switch {
	case sc.Leader && !onEtcd:
		return fmt.Errorf("%w: %s breaks the leader of etcd, and StoreSvr has none: expected --engine etcd", ErrEngine, sc.Name)
	case sc.Stores > 0 && onEtcd && len(of(store)) == 0:
		return fmt.Errorf("%w: %s breaks members of etcd, and those of an etcd of others are not touched: expected --engine etcd", ErrEngine, sc.Name)
	case sc.Sets > 0 && onEtcd && sc.Expect.Others:
		return fmt.Errorf("%w: %s breaks all of a Set, and here all Sets are on one etcd: expected --engine store", ErrEngine, sc.Name)
	}
	if len(of(store)) < sc.Stores || len(of(alloc)) < sc.Allocs || len(of(router)) < sc.Routers {
		return fmt.Errorf("%w: %s needs %d stores, %d allocs, %d routers", ErrTooSmall, sc.Name, max(sc.Stores, 1), max(sc.Allocs, 1), max(sc.Routers, 1))
	}
	if zones(nodes) < sc.Zones {
		return fmt.Errorf("%w: %s needs nodes in %d zones", ErrTooSmall, sc.Name, sc.Zones)
	}
	if err := sc.fitsSets(nodes, set); err != nil {
		return err
	}
	switch {
	case node == "":
		return nil
	case sc.Role == "":
		return fmt.Errorf("%w: %q: %s breaks more than one node", seq.ErrUnknownNode, node, sc.Name)
	}
	return known(node, names(of(sc.Role)))
}

// known is nil if the node is one of those that may be broken.
func known(node string, may []string) error {
	if !slices.Contains(may, node) {
		return fmt.Errorf("%w: %q, expected one of %v", seq.ErrUnknownNode, node, may)
	}
	return nil
}

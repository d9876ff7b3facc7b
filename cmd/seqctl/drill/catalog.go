package drill

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/localcluster"
)

// drill is one way to break a cluster.
type drill struct {
	name string
	what string
	// least is how many nodes of a role it needs.
	stores, allocs, routers int
	// namespaces: it needs the nodes in network namespaces of their own.
	namespaces bool
	// asks: it needs no process, only the Admin service.
	asks bool
	// role of the node that --node may name; empty: it takes none.
	role localcluster.Role
	run  func(ctx context.Context, s *scene) error
}

// drills in the order of --list.
var drills = []drill{
	{name: "kill-alloc", allocs: 2, role: localcluster.RoleAlloc, run: killAlloc,
		what: "kill -9 the AllocSvr with most sections; its standbys take over when its lease ends (at once with --supervise)"},
	{name: "pause-alloc", allocs: 2, role: localcluster.RoleAlloc, run: pauseAlloc,
		what: "SIGSTOP an AllocSvr for half a lease, then for two leases (or once for --pause); woken up it must not answer as the owner"},
	{name: "restart-alloc", allocs: 2, role: localcluster.RoleAlloc, run: restartAlloc,
		what: "SIGTERM an AllocSvr, which hands its sections over with their counters, and start it again"},
	{name: "drain-alloc", allocs: 2, role: localcluster.RoleAlloc, asks: true, run: drainAlloc,
		what: "seqctl drain an AllocSvr, so that its sections move away with their counters, and undrain it"},
	{name: "kill-store", stores: 3, role: localcluster.RoleStore, run: killStore,
		what: "kill -9 one StoreSvr and start it again"},
	{name: "kill-two-stores", stores: 3, run: killTwoStores,
		what: "kill -9 two StoreSvr, so that the quorum is gone: Unavailable once the leases have ended; then start one, then the other"},
	{name: "kill-router", routers: 2, role: localcluster.RoleRouter, run: killRouter,
		what: "kill -9 a router; half of the callers go to the owners directly, half through the list of routers only"},
	{name: "rolling-restart", allocs: 2, stores: 3, run: rollingRestart,
		what: "restart every StoreSvr, then every AllocSvr, then every router, one after the other"},
	{name: "partition-alloc", allocs: 2, namespaces: true, role: localcluster.RoleAlloc, run: partitionAlloc,
		what: "cut an AllocSvr off from everybody for three leases (or --pause), then mend the network"},
	{name: "partition-store", stores: 3, namespaces: true, role: localcluster.RoleStore, run: partitionStore,
		what: "cut a StoreSvr off from everybody for three leases (or --pause), then mend the network"},
	{name: "one-way", allocs: 2, namespaces: true, role: localcluster.RoleAlloc, run: oneWay,
		what: "let an AllocSvr send but not receive for three leases (or --pause), and after that receive but not send"},
}

func find(name string) (drill, error) {
	var names []string
	for _, d := range drills {
		if d.name == name {
			return d, nil
		}
		names = append(names, d.name)
	}
	return drill{}, fmt.Errorf("%w %q: expected one of %s", ErrUnknownDrill, name, strings.Join(names, ", "))
}

// fits says whether the cluster has nodes enough for the drill.
func (d drill) fits(nodes []localcluster.Node) error {
	for role, least := range map[localcluster.Role]int{
		localcluster.RoleStore: d.stores, localcluster.RoleAlloc: d.allocs, localcluster.RoleRouter: d.routers,
	} {
		have := 0
		for _, n := range nodes {
			if n.Role == role {
				have++
			}
		}
		if have < least {
			return fmt.Errorf("%w: %s needs %d of role %s, there are %d", ErrTooSmall, d.name, least, role, have)
		}
	}
	return nil
}

// stand says whether --node names a node that the drill may take.
func (d drill) stand(node string, nodes []localcluster.Node) error {
	if node == "" {
		return nil
	}
	fit := slices.DeleteFunc(slices.Clone(nodes), func(n localcluster.Node) bool { return n.Role != d.role })
	if slices.ContainsFunc(fit, func(n localcluster.Node) bool { return n.Name == node }) {
		return nil
	}
	return unknownNode(node, d.role, fit)
}

// outage is how long nodes are kept away where nothing else says so.
func (s *scene) outage(leases int) time.Duration {
	if s.pause > 0 {
		return s.pause
	}
	return time.Duration(leases) * s.lease
}

package dev

import (
	"errors"
	"slices"
	"testing"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// place is a row of a verb, with the zones that it shows.
type place struct {
	Name, Role, Zone, Node, Owner string
	Standbys                      []string
	Zones                         []string `json:"standby_zones"`
}

func TestEveryVerbShowsTheZonesOfNodes(t *testing.T) {
	c := up(t, t.TempDir(), "--allocs", "4", "--routers", "2", "--lease", "4s", "--zones", "a,b,c")
	in := map[string]string{"store-1": "a", "store-2": "b", "store-3": "c", "alloc-1": "a", "alloc-2": "b", "alloc-3": "c", "alloc-4": "a", "router-1": "a", "router-2": "b"}
	wrong := func(name, zone string) bool { return zone != in[name] }
	harness.Until(t, "the status to have all zones", func() bool {
		var status struct{ Allocs, Stores, Routers []place }
		c.ask(t, &status, "status")
		all := slices.Concat(status.Allocs, status.Stores, status.Routers)
		return len(all) == len(in) && !slices.ContainsFunc(all, func(p place) bool { return wrong(p.Name, p.Zone) })
	})
	harness.Until(t, "the members to have all zones", func() bool {
		var members []place
		c.ask(t, &members, "members")
		return len(members) == len(in) && !slices.ContainsFunc(members, func(p place) bool { return wrong(p.Name, p.Zone) })
	})
	harness.Until(t, "every section to have its standbys in other zones than its owner", func() bool {
		var leases []place
		c.ask(t, &leases, "leases")
		return len(leases) == 128 && !slices.ContainsFunc(leases, func(p place) bool {
			return len(p.Standbys) != 2 || len(p.Zones) != 2 || wrong(p.Node, p.Zone) || wrong(p.Standbys[0], p.Zones[0]) ||
				p.Zone == p.Zones[0] || p.Zone == p.Zones[1] || p.Zones[0] == p.Zones[1]
		})
	})
	var one place
	c.ask(t, &one, "route", "42")
	if wrong(one.Owner, one.Zone) || len(one.Zones) != 2 || wrong(one.Standbys[0], one.Zones[0]) {
		t.Errorf("route shows %+v", one)
	}
	var table struct{ Nodes []place }
	c.ask(t, &table, "route")
	if len(table.Nodes) != 4 || slices.ContainsFunc(table.Nodes, func(p place) bool { return wrong(p.Name, p.Zone) }) {
		t.Errorf("route shows %+v", table.Nodes)
	}
}

func TestAZoneOfDevThatIsNoNameIsAUsageError(t *testing.T) {
	_, _, err := seqctl(t.Context(), "dev", "--data-dir", t.TempDir(), "--zones", "a,b c")
	if !errors.Is(err, daemon.ErrUsage) || !errors.Is(err, seq.ErrBadArgument) {
		t.Errorf("got %v, want a usage error", err)
	}
}

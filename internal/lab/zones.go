package lab

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
)

// drillZones are the zones of a drill's own cluster if the scenario needs zones.
var drillZones = []string{"a", "b", "c"}

// zones counts those that the nodes name.
func zones(nodes []localcluster.Node) int {
	named := map[string]bool{}
	for _, n := range nodes {
		if n.Zone != "" {
			named[n.Zone] = true
		}
	}
	return len(named)
}

// killZone kills every process of the zone of the AllocSvr with most sections, all at once. In a
// drill's own cluster they stay dead: what they were for goes on without them.
func killZone(ctx context.Context, s *Scene) error {
	first, err := s.Victims(ctx, 1, alloc)
	if err != nil || len(first) == 0 {
		return err
	}
	in := func(zone string) func(localcluster.Node) bool {
		return func(n localcluster.Node) bool { return n.Zone != zone }
	}
	victims := slices.DeleteFunc(slices.Clone(s.Nodes), in(s.find(first[0]).Zone))
	allocs := slices.DeleteFunc(s.Role(alloc), in(s.find(first[0]).Zone))
	touched := everybody
	if s.drill != nil {
		if touched, err = s.drill.watchLeases(ctx, names(allocs)); err != nil {
			return err
		}
	}
	err = s.hurt(names(victims), "SIGKILL", touched, s.Kill)
	s.Rest(ctx, s.away(s.Lease+s.Lease/2))
	err = errors.Join(err, s.served(ctx, names(allocs)...))
	if s.drill != nil && s.Own != nil {
		return err
	}
	return errors.Join(err, s.StartAgain(ctx, names(victims)))
}

// perSecond returns the number of calls that were answered a second from one moment to another, or zero for
// no time.
func perSecond(calls []history.Call, from, to time.Duration) float64 {
	if to <= from {
		return 0
	}
	n := 0
	for _, c := range calls {
		if c.Err == "" && c.End >= from && c.End < to {
			n++
		}
	}
	return float64(n) / (to - from).Seconds()
}

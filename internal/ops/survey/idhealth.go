package survey

import (
	"context"
	"fmt"
	"sync"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

const (
	// crowdedPercent of a pool of worker ids, and yearAhead of a layout's end, are where
	// the allocators warn, too.
	crowdedPercent = 80
	yearAhead      = 365 * 24 * time.Hour
	// epochAhead bounds how far an epoch is ahead of this machine's clock.
	epochAhead = 10 * time.Minute
	// maxNamespaces bounds what status asks the stores for; the metrics have them all.
	maxNamespaces = 16
)

// AskIDs looks at the namespaces of snowflake IDs by way of one AllocSvr that answered.
// One that does not serve them has no troubles with them.
func (s *Survey) AskIDs(ctx context.Context, c pb.SnowflakeClient, now time.Time) {
	s.idTroubles = idTroubles(ctx, c, now)
}

// idTroubles are regions with IDs in common, worker ids that run short and layouts that end soon.
func idTroubles(ctx context.Context, c pb.SnowflakeClient, now time.Time) []trouble {
	reply, err := c.Namespaces(ctx, &pb.SnowflakeNamespacesRequest{})
	if err != nil {
		return nil
	}
	var used []*pb.SnowflakeNamespace
	for _, ns := range reply.GetNamespaces() {
		if ns.GetVersion() > 0 && ns.GetRetiredUnixMs() == 0 && len(used) < maxNamespaces {
			used = append(used, ns)
		}
	}
	found := make([][]trouble, len(used))
	var wg sync.WaitGroup
	for i, ns := range used {
		wg.Go(func() {
			if t, ends := layoutTrouble(ns, now); ends {
				found[i] = append(found[i], t)
			}
			workers, err := c.Workers(ctx, &pb.SnowflakeWorkersRequest{Namespace: ns.GetName()})
			if err != nil {
				return
			}
			if t, short := workersTrouble(workers); short {
				found[i] = append(found[i], t)
			}
			if t, ahead := aheadTrouble(workers); ahead {
				found[i] = append(found[i], t)
			}
		})
	}
	wg.Wait()
	all := regionTroubles(reply.GetConflicts())
	for _, f := range found {
		all = append(all, f...)
	}
	return all
}

// regionTroubles is what the allocator found in clusters of other regions.
func regionTroubles(conflicts []string) []trouble {
	if len(conflicts) == 0 {
		return nil
	}
	what := conflicts[0]
	if n := len(conflicts) - 1; n > 0 {
		what += fmt.Sprintf(" (and %d more)", n)
	}
	return []trouble{{cause: idsShared, what: what, do: "seqctl namespace compare OTHER",
		why: "IDs can come twice: the region that came later gets another datacenter id (docs/operations.md#seqidssharedbyregions)"}}
}

func layoutTrouble(ns *pb.SnowflakeNamespace, now time.Time) (t trouble, ends bool) {
	end := time.UnixMilli(ns.GetLayout().GetExhaustedUnixMs()).UTC()
	t = trouble{cause: layoutEnds, do: "seqctl namespace show " + ns.GetName(),
		why: "move its callers to a namespace with a later end (docs/ids.md)"}
	switch begins, left := time.UnixMilli(ns.GetLayout().GetEpochUnixMs()).UTC(), end.Sub(now); {
	case begins.Sub(now) > epochAhead:
		t.breaks, t.what = true, fmt.Sprintf("layout of %s begins on %s", ns.GetName(), begins.Format(time.DateOnly))
		t.do, t.why = "seqctl namespace retire "+ns.GetName(), "it hands out nothing before, and its epoch cannot change: make another namespace (docs/ids.md)"
	case left <= 0:
		t.breaks, t.what = true, fmt.Sprintf("layout of %s ended on %s", ns.GetName(), end.Format(time.DateOnly))
		t.do, t.why = "seqctl namespace retire "+ns.GetName(), "once its callers use another namespace (docs/ids.md); it hands out nothing"
	case left < yearAhead:
		t.what = fmt.Sprintf("layout of %s ends on %s, in %d days", ns.GetName(), end.Format(time.DateOnly), left/(24*time.Hour))
	default:
		return t, false
	}
	return t, true
}

func workersTrouble(r *pb.SnowflakeWorkersReply) (t trouble, short bool) {
	held := map[uint64]uint64{} // by datacenter
	for _, w := range r.GetWorkers() {
		if !w.GetFree() {
			held[w.GetDatacenterId()]++
		}
	}
	var most, at uint64
	for dc, n := range held {
		if n > most || n == most && dc < at {
			most, at = n, dc
		}
	}
	// As the allocators have it, and without an overflow for layouts of many worker ids.
	if pool := r.GetPool(); pool >= 1<<40 || most*100 <= pool*crowdedPercent {
		return t, false
	}
	return trouble{cause: workersShort, what: fmt.Sprintf("%d of %d worker ids of %s taken (datacenter %d)", most, r.GetPool(), r.GetNamespace(), at),
		do: "seqctl snowflake workers --namespace " + r.GetNamespace(), why: "with none left a new node gets no IDs (docs/operations.md#seqworkeridsrunshort)"}, true
}

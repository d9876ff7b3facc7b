package globalid

import (
	"time"

	"github.com/seqsvr/seqsvr/snowflake"
)

// Stats is how the endpoint stands, for metrics.
type Stats struct {
	Namespaces []NamespaceStats  // those that were asked for here, by name
	Agents     map[string]uint64 // IDs by agent since start; "(none)" gave no name, "(other)" came when the table was full
}

// NamespaceStats is how one namespace stands at this node.
type NamespaceStats struct {
	Name       string
	Issued     uint64 // IDs since start
	Delegated  uint64 // windows given to clients since start
	Held       bool   // the node has a worker id
	Worker     snowflake.Worker
	Datacenter snowflake.Datacenter
	Confirmed  time.Time // end of the window; zero unless Held
	LayoutEnds time.Time
	// EndsSoon: within a year, unless it is retired. Crowded: more than 80 % of the pool is not free.
	EndsSoon, Crowded bool
	PoolHeld          int    // worker ids that are not free, as last seen
	Pool              uint64 // worker ids of one datacenter; 0: not seen yet
}

// Stats reads the counters. Safe for concurrent use.
func (s *Service) Stats() Stats {
	v := s.view.Load()
	out := Stats{Agents: s.agents.counts()}
	for _, ns := range v.directory.all(s.offers) {
		i := v.names[ns.Name]
		if i == nil || i.used.Load() == 0 && i.delegated.Load() == 0 {
			continue
		}
		n := NamespaceStats{Name: ns.Name, Issued: i.issued.Load(), Delegated: i.delegated.Load(), LayoutEnds: ns.Layout.Exhausted(),
			EndsSoon: ns.Retired == 0 && ns.Layout.Remaining(s.cfg.Wall()) <= snowflake.ExhaustionWarning}
		if l := i.current.Load(); l != nil {
			n.Held, n.Worker, n.Datacenter, n.Confirmed = true, l.worker, l.datacenter, l.mark().time()
		}
		i.mu.Lock()
		n.PoolHeld, n.Pool, n.Crowded = i.pool.held, i.pool.size, i.pool.size > 0 && i.pool.crowded()
		i.mu.Unlock()
		out.Namespaces = append(out.Namespaces, n)
	}
	return out
}

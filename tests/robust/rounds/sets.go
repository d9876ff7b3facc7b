package rounds

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/seqsvr/seqsvr/internal/lab"
)

// setsShare is what part of a budget rounds with Sets get.
const setsShare = 6

// OfSets is a cluster of two Sets, with scenarios of its own: a smaller one, since the other scenarios have
// what concerns the nodes of one.
func (c Config) OfSets() Config {
	c.Sets, c.Allocs, c.Spaces = 2, 2, nil
	c.Network, c.ForgetFS = nil, ""
	return c
}

// OfSets returns the plan for the rounds with Sets, which follow the rounds of one cluster.
func (p Plan) OfSets() Plan {
	p.Budget /= setsShare
	return p
}

// Has says whether any scenario for a cluster of the Config is in the plan.
func (c Config) Has(p Plan) bool {
	s := &session{Site: &Site{cfg: c}, plan: p}
	return len(s.chosen()) > 0
}

// scenarios are all that there are for the cluster, which is on StoreSvr.
func (s *Site) scenarios() []lab.Scenario {
	if s.cfg.Sets > 1 {
		return lab.SetScenarios(filepath.Join(s.cfg.Bin, "seqctl"))
	}
	all := slices.Concat(lab.Drills(), lab.Wider(), s.wayFaults(), s.diskFaults(), s.copyFaults(), s.seamFaults())
	return slices.DeleteFunc(all, func(sc lab.Scenario) bool { return sc.Leader || sc.Sets > 0 })
}

// named says whether a scenario is one of those asked for.
func (p Plan) named(sc lab.Scenario) bool {
	return len(p.Kinds) == 0 || slices.ContainsFunc(p.Kinds, func(k string) bool { return strings.Contains(sc.Name, k) })
}

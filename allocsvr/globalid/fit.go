package globalid

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// fits says whether this node's configuration has a place in the layout: seq.ErrNodeUnfit,
// so that callers ask another node. It is no fault of theirs.
func (c Config) fits(l snowflake.Layout) error {
	if l.HasDatacenter() && c.DatacenterID > l.MaxDatacenter() {
		return fmt.Errorf("%w: datacenter id %d, the layout has 0 to %d", seq.ErrNodeUnfit, c.DatacenterID, l.MaxDatacenter())
	}
	if c.Worker != nil && *c.Worker > l.MaxWorker() {
		return fmt.Errorf("%w: worker id %d, the layout has 0 to %d", seq.ErrNodeUnfit, *c.Worker, l.MaxWorker())
	}
	return nil
}

// Ready is nil if this node can hand out IDs in some namespace that it knows, as far as
// its configuration goes: seq.ErrNodeUnfit otherwise, with the reason of each.
func (s *Service) Ready() error {
	var why []string
	for name, ns := range s.view.Load().spaces {
		err := s.cfg.fits(ns.Layout)
		if err == nil {
			return nil
		}
		why = append(why, fmt.Sprintf("namespace %q: %s", name, strings.TrimPrefix(err.Error(), seq.ErrNodeUnfit.Error()+": ")))
	}
	slices.Sort(why)
	const most = 4 // named: there may be a thousand
	if more := len(why) - most; more > 0 {
		why = append(why[:most], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w for every namespace: %s", seq.ErrNodeUnfit, strings.Join(why, "; "))
}

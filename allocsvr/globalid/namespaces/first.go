package namespaces

import (
	"context"
	"slices"

	"github.com/seqsvr/seqsvr/snowflake"
)

// Bound reports whether the cluster has used a datacenter id, which binds it to a name.
func (v *View) Bound(id snowflake.Datacenter) bool {
	return slices.ContainsFunc(v.Datacenters, func(dc Datacenter) bool { return dc.ID == id })
}

// clear asks First before a datacenter is used for the first time.
func (c *Catalog) clear(ctx context.Context, dc Datacenter) error {
	if c.cfg.First == nil || c.Known().Bound(dc.ID) {
		return nil
	}
	return c.cfg.First(ctx, dc)
}

package namespaces

import (
	"context"
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/seq"
)

// In checks that this node's IDs of a namespace are of the named datacenter. The name "" allows any. In
// returns seq.ErrUnknownDatacenter if no node was ever of that datacenter, or if the namespace's IDs have
// none. It returns seq.ErrNodeUnfit if other nodes are of that datacenter. Other errors are
// seq.ErrBadArgument and the errors of Find.
func (c *Catalog) In(ctx context.Context, ref Ref, datacenter string) error {
	switch {
	case datacenter == "":
		return nil
	case !datacenterName.MatchString(datacenter):
		return fmt.Errorf("%w: datacenter %.80q, expected %s", seq.ErrBadArgument, datacenter, datacenterName)
	}
	ns, err := c.Find(ctx, ref)
	switch own := c.cfg.Node.Datacenter.Name; {
	case err != nil:
		return err
	case !ns.Layout.HasDatacenter():
		return fmt.Errorf("%w: %q: namespace %q has layout %s, without datacenters", seq.ErrUnknownDatacenter, datacenter, ns.Name, ns.Layout.Name())
	case own == datacenter:
		return nil
	case c.Known().has(datacenter):
		return fmt.Errorf("%w: this node is of datacenter %q, not %q", seq.ErrNodeUnfit, own, datacenter)
	}
	// It may have come up at another node a moment ago.
	v, err := c.Read(ctx)
	if err != nil {
		return fmt.Errorf("find datacenter: %w", err)
	}
	if v.has(datacenter) {
		return fmt.Errorf("%w: this node is of datacenter %q, not %q", seq.ErrNodeUnfit, c.cfg.Node.Datacenter.Name, datacenter)
	}
	return fmt.Errorf("%w: %q", seq.ErrUnknownDatacenter, datacenter)
}

// has reports whether a datacenter of that name was used.
func (d directory) has(name string) bool {
	return slices.ContainsFunc(d.Datacenters, func(dc Datacenter) bool { return dc.Name == name })
}

package namespaces

import (
	"fmt"
	"regexp"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Node has the configured parts of one node's IDs.
type Node struct {
	// Datacenter goes into the IDs of layouts that have that field. Its id is bound to its
	// name, "" for none, at its first use in the cluster.
	Datacenter Datacenter
	// Worker is the only worker id to be used. If nil, any free worker id is used.
	Worker *snowflake.Worker
}

var datacenterName = regexp.MustCompile(`^[A-Za-z0-9._-]{0,64}$`)

func (n Node) validate() error {
	if !datacenterName.MatchString(n.Datacenter.Name) {
		return fmt.Errorf("%w: datacenter name %q, expected %s", seq.ErrBadArgument, n.Datacenter.Name, datacenterName)
	}
	return nil
}

// Fits returns seq.ErrNodeUnfit if this node's configuration has no place in the layout. It is not the
// callers' fault, so they ask another node.
func (n Node) Fits(l snowflake.Layout) error {
	if l.HasDatacenter() && n.Datacenter.ID > l.MaxDatacenter() {
		return fmt.Errorf("%w: datacenter id %d, the layout has 0 to %d", seq.ErrNodeUnfit, n.Datacenter.ID, l.MaxDatacenter())
	}
	if n.Worker != nil && *n.Worker > l.MaxWorker() {
		return fmt.Errorf("%w: worker id %d, the layout has 0 to %d", seq.ErrNodeUnfit, *n.Worker, l.MaxWorker())
	}
	return nil
}

// DatacenterIn returns the datacenter of the node's IDs in the layout. If the layout has no datacenter
// field, it returns 0, because all datacenters then share one pool of worker ids.
func (n Node) DatacenterIn(l snowflake.Layout) snowflake.Datacenter {
	if !l.HasDatacenter() {
		return 0
	}
	return n.Datacenter.ID
}

// of reports whether the worker id that the node is bound to is among those, or there are any if it is
// bound to none.
func (n Node) of(own Own) bool {
	if n.Worker == nil {
		return len(own) > 0
	}
	_, ok := own.Find(*n.Worker)
	return ok
}

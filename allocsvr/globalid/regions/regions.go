// Package regions compares the global IDs of independent clusters. The clusters of two regions, which have
// no stores or Sets in common, must not share a datacenter id. Otherwise IDs repeat.
//
// Two layouts differ for certain only if some bit that both give to the datacenter differs
// (snowflake.Layout.Apart). Everything else is a conflict:
//
//   - A node does not start if its datacenter id was not used here and another region has
//     it. A running node makes no IDs.
//   - If both regions used the id, IDs continue. The log, a metric, an alert and seqctl
//     status name the conflict.
//   - A node may start with another id in place of an id in conflict.
//   - A region that does not answer delays a node by at most 2 s, and its earlier answers
//     still count.
//
// A cluster knows which ids were used, and not which ids still are. So a conflict stays until the
// namespaces are retired on one side.
//
// What belongs here: the comparison, without I/O. What does not: asking the clusters, and the reaction to a
// conflict.
package regions

import (
	"errors"
	"fmt"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Cluster describes the IDs that one cluster makes.
type Cluster struct {
	ID          string
	Namespaces  []Namespace
	Datacenters []Datacenter    // that IDs were made of, over all namespaces
	Life        seq.Incarnation // not known of a build of the version before
}

// Namespace is one that hands out IDs.
type Namespace struct {
	Name     string
	Alias    uint32 // zero means no alias
	Layout   snowflake.Layout
	Recorded bool // if false, the namespace is offered, and its first caller may create IDs
}

// Datacenter is an id and the name that it is bound to, "" for none.
type Datacenter struct {
	ID   snowflake.Datacenter
	Name string
}

// String is such as 1 "cn".
func (d Datacenter) String() string {
	if d.Name == "" {
		return fmt.Sprintf("%d without a name", d.ID)
	}
	return fmt.Sprintf("%d %q", d.ID, d.Name)
}

// Conflict is one namespace whose IDs in two clusters can be equal.
type Conflict struct {
	Cluster, Other                   string
	Namespace, OtherNamespace        string // the same, unless they have an alias in common
	HasDatacenter                    bool   // both layouts have the field; otherwise the datacenters have no meaning
	Datacenter, OtherDatacenter      Datacenter
	layout, otherLayout, sharedAlias string
}

// String names both clusters, the ids and the namespace.
func (c Conflict) String() string {
	what := fmt.Sprintf("namespace %q", c.Namespace)
	if c.OtherNamespace != c.Namespace {
		what += fmt.Sprintf(" and %q, both alias %s", c.OtherNamespace, c.sharedAlias)
	}
	same := fmt.Sprintf("clusters %s and %s can make the same IDs: %s", c.Cluster, c.Other, what)
	if !c.HasDatacenter {
		return fmt.Sprintf("%s, layouts %s and %s, not both with datacenters", same, c.layout, c.otherLayout)
	}
	return fmt.Sprintf("%s, datacenters %s and %s", same, c.Datacenter, c.OtherDatacenter)
}

// ErrUnreadable is a cluster whose reply this version cannot compare.
var ErrUnreadable = errors.New("namespaces of another cluster not readable")

// Of returns a cluster's description of itself. A server of a version that does not send its id is known by
// its address. Of returns ErrUnreadable if the cluster has a layout that is not known here.
func Of(reply *pb.SnowflakeNamespacesReply, addr string) (Cluster, error) {
	c := Cluster{ID: reply.GetClusterId(), Life: rpc.IncarnationFromProto(reply.GetIncarnation())}
	if c.ID == "" {
		c.ID = "at " + addr
	}
	for _, ns := range reply.GetNamespaces() {
		if ns.GetRetiredUnixMs() != 0 {
			continue // it hands out nothing; what it did lies behind
		}
		l, err := snowflake.ParseLayout(ns.GetLayout().GetText())
		if err != nil {
			return c, fmt.Errorf("%w: cluster %s, namespace %q: %w", ErrUnreadable, c.ID, ns.GetName(), err)
		}
		c.Namespaces = append(c.Namespaces, Namespace{ns.GetName(), ns.GetAlias(), l, ns.GetVersion() > 0})
	}
	for _, dc := range reply.GetDatacenters() {
		c.Datacenters = append(c.Datacenters, Datacenter{snowflake.Datacenter(dc.GetId()), dc.GetName()})
	}
	return c, nil
}

// Is reports whether both are one cluster: of one id, and not of two incarnations of which neither is a later
// era of the other.
func (c Cluster) Is(other Cluster) bool {
	return c.ID == other.ID && !errors.Is(c.Life.Check(other.Life), seq.ErrForeignCluster)
}

// String returns the id, and for a cluster that tells its incarnation, what tells it from others of that id.
func (c Cluster) String() string {
	if !c.Life.Known() {
		return c.ID
	}
	return c.ID + " (" + c.Life.String() + ")"
}

// Conflicts returns the namespaces of which both clusters can make the same ID, each once for each
// datacenter here.
func (c Cluster) Conflicts(other Cluster) (all []Conflict) {
	for _, mine := range c.Namespaces {
		for _, theirs := range other.Namespaces {
			if mine.Name != theirs.Name && (mine.Alias == 0 || mine.Alias != theirs.Alias) {
				continue // callers never mean both
			}
			all = append(all, c.meet(other, mine, theirs)...)
		}
	}
	return all
}

// meet compares one namespace of each.
func (c Cluster) meet(other Cluster, mine, theirs Namespace) (all []Conflict) {
	here, there := c.ID, other.ID
	if here == there {
		here, there = c.String(), other.String()
	}
	one := Conflict{Cluster: here, Other: there, Namespace: mine.Name, OtherNamespace: theirs.Name, sharedAlias: fmt.Sprint(mine.Alias),
		layout: mine.Layout.WithPolicy(snowflake.Policy{}).Name(), otherLayout: theirs.Layout.WithPolicy(snowflake.Policy{}).Name(), HasDatacenter: mine.Layout.HasDatacenter() && theirs.Layout.HasDatacenter()}
	if !one.HasDatacenter {
		if mine.Recorded && theirs.Recorded { // else there are no IDs so far
			all = append(all, one)
		}
		return all
	}
	for _, a := range c.Datacenters {
		for _, b := range other.Datacenters {
			if !mine.Layout.Apart(a.ID, theirs.Layout, b.ID) {
				one.Datacenter, one.OtherDatacenter = a, b
				all = append(all, one)
				break
			}
		}
	}
	return all
}

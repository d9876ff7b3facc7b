package ids

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/regions"
	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// errShared: two clusters can make the same ID.
var errShared = errors.New("IDs of two clusters can be equal")

// compared is the output of compare.
type compared struct {
	Clusters  []comparedCluster `json:"clusters"`
	Conflicts []conflictRow     `json:"conflicts"`
}

type comparedCluster struct {
	Cluster     string          `json:"cluster_id"`
	Addr        string          `json:"addr"` // that answered
	Datacenters []datacenterRow `json:"datacenters"`
}

type conflictRow struct {
	Cluster         string         `json:"cluster_id"`
	Other           string         `json:"other_cluster_id"`
	Namespace       string         `json:"namespace"`
	OtherNamespace  string         `json:"other_namespace"` // another one only by its alias
	Datacenter      *datacenterRow `json:"datacenter"`      // null: a layout without that field
	OtherDatacenter *datacenterRow `json:"other_datacenter"`
	Text            string         `json:"text"`
}

func newConflictRow(c regions.Conflict) conflictRow {
	r := conflictRow{Cluster: c.Cluster, Other: c.Other, Namespace: c.Namespace, OtherNamespace: c.OtherNamespace, Text: c.String()}
	if c.HasDatacenter {
		r.Datacenter = &datacenterRow{uint64(c.Datacenter.ID), c.Datacenter.Name}
		r.OtherDatacenter = &datacenterRow{uint64(c.OtherDatacenter.ID), c.OtherDatacenter.Name}
	}
	return r
}

func namespaceCompareCommand() *cobra.Command {
	o := &ctl.Options{}
	cmd := &cobra.Command{
		Use:   "compare OTHER ...",
		Short: "tell whether clusters of several regions can make the same IDs",
		Long: `compare asks the cluster at --addr and each OTHER, the name of a context or host:port, for namespaces and datacenters. Clusters
of two regions, without stores or Sets in common, must have no datacenter id in common in a namespace of one name or
alias, and no such namespace with a layout without datacenters. Fails if two of them can make the same ID. It changes nothing.`,
		Example: "  seqctl namespace compare --context cn sg us",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return daemon.Usage(fmt.Errorf("0 arguments: expected seqctl namespace %s", cmd.Use))
			}
			return nil
		},
	}
	o.AddTo(cmd, askTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		all, r, err := askClusters(ctx, o, args)
		if err != nil {
			return err
		}
		for i, one := range all {
			for _, other := range all[i+1:] {
				if one.Is(other) {
					return daemon.Usage(fmt.Errorf("two addresses are of cluster %s: expected another cluster; of a copy nothing can be told", one.ID))
				}
				for _, c := range one.Conflicts(other) {
					r.Conflicts = append(r.Conflicts, newConflictRow(c))
				}
			}
		}
		if err := r.print(stdout, format); err != nil {
			return err
		}
		if n := len(r.Conflicts); n > 0 {
			return fmt.Errorf("%w: %d, the first: %s", errShared, n, r.Conflicts[0].Text)
		}
		return nil
	})
	return cmd
}

// askClusters asks the cluster of the flags and the others.
func askClusters(ctx context.Context, o *ctl.Options, others []string) (all []regions.Cluster, r compared, err error) {
	r.Conflicts = []conflictRow{}
	asked := []*ctl.Options{o}
	for _, text := range others {
		other, err := o.Other(text)
		if err != nil {
			return nil, r, err
		}
		asked = append(asked, other)
	}
	for _, at := range asked {
		reply, err := askSnowflake(ctx, at, pb.SnowflakeClient.Namespaces, &pb.SnowflakeNamespacesRequest{})
		if err != nil {
			o.Addr = at.Addr // which did not answer
			return nil, r, err
		}
		c, err := regions.Of(reply, at.Addr)
		if err != nil {
			return nil, r, err
		}
		row := comparedCluster{c.ID, at.Addr, []datacenterRow{}}
		for _, dc := range c.Datacenters {
			row.Datacenters = append(row.Datacenters, datacenterRow{uint64(dc.ID), dc.Name})
		}
		all, r.Clusters = append(all, c), append(r.Clusters, row)
	}
	return all, r, nil
}

func (r compared) print(w io.Writer, format ui.Format) error {
	err := ui.Print(w, format, r, func() *ui.Table {
		t := ui.NewTable("cluster", "datacenters", "asked")
		for _, c := range r.Clusters {
			var names []string
			for _, dc := range c.Datacenters {
				names = append(names, strings.TrimSpace(fmt.Sprintf("%d %s", dc.ID, dc.Name)))
			}
			t.Row(c.Cluster, strings.Join(names, ", "), c.Addr)
		}
		return t
	})
	if err != nil || format != ui.FormatTable {
		return err
	}
	for _, c := range r.Conflicts {
		fmt.Fprintln(w, c.Text)
	}
	return nil
}

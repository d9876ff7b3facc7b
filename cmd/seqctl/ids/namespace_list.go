package ids

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// namespaceList is what list prints.
type namespaceList struct {
	Namespaces []namespaceRow `json:"namespaces"`
	// Over all namespaces; an id belongs to the name that used it first.
	Datacenters []datacenterRow `json:"datacenters"`
}

type datacenterRow struct {
	ID   uint64 `json:"id"`
	Name string `json:"name"` // empty: nodes without a datacenter name
}

func namespaceListCommand() *cobra.Command {
	o := &ctl.Options{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the namespaces, and the datacenters with their ids",
		Args:  between(0, 0),
	}
	o.AddTo(cmd, askTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		reply, err := askNamespaces(ctx, o, "")
		if err != nil {
			return err
		}
		r := namespaceList{[]namespaceRow{}, []datacenterRow{}}
		for _, ns := range reply.GetNamespaces() {
			r.Namespaces = append(r.Namespaces, newNamespaceRow(ns))
		}
		for _, dc := range reply.GetDatacenters() {
			r.Datacenters = append(r.Datacenters, datacenterRow{dc.GetId(), dc.GetName()})
		}
		return r.print(stdout, format)
	})
	return cmd
}

// askNamespaces gets one namespace, or all of them for "".
func askNamespaces(ctx context.Context, o *ctl.Options, name string) (*pb.SnowflakeNamespacesReply, error) {
	return askSnowflake(ctx, o, func(ctx context.Context, c pb.SnowflakeClient) (*pb.SnowflakeNamespacesReply, error) {
		return c.Namespaces(ctx, &pb.SnowflakeNamespacesRequest{Namespace: name})
	})
}

func (r namespaceList) print(w io.Writer, format ui.Format) error {
	if err := ui.Print(w, format, r, func() *ui.Table { return namespaceTable(r.Namespaces...) }); err != nil || format != ui.FormatTable || len(r.Datacenters) == 0 {
		return err
	}
	fmt.Fprintln(w)
	t := ui.NewTable("datacenter", "name")
	for _, dc := range r.Datacenters {
		t.Row(digits(dc.ID), orDash(dc.Name))
	}
	return t.Write(w)
}

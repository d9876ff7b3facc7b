package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

func membersCommand() *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "members",
		Short: "list all nodes, of all Sets: the memberlist view beside the stores' sessions",
		Args:  ExactArgs(),
	}
	o.AddTo(cmd, askTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		all, err := o.allSets(ctx)
		if err != nil {
			return err
		}
		rows, silent := []survey.Member{}, error(nil)
		for _, s := range all {
			reply, err := onAnyNode(ctx, s.o, pb.AdminClient.Status, &pb.StatusRequest{})
			if err != nil {
				silent = errors.Join(silent, fmt.Errorf("Set %s: %w", s.name, err))
				if s.name == "" {
					return err
				}
				continue
			}
			for _, m := range survey.Members(reply) {
				m.Set = s.name
				rows = append(rows, m)
			}
		}
		if err := ui.Print(stdout, format, rows, func() *ui.Table { return membersTable(rows, all) }); err != nil {
			return err
		}
		return silent
	})
	return cmd
}

// membersTable has a column for the Set if there are several.
func membersTable(rows []survey.Member, all []oneSet) *ui.Table {
	columns := []string{"name", "role", "state", "since", "addr", "session", "desired", "owned", "lease left", "routes", "zone"}
	if len(all) > 1 {
		columns = append(columns, "set")
	}
	t := ui.NewTable(columns...)
	for _, r := range rows {
		state := State(r.State, r.State == "alive")
		if r.Drained {
			state = Pending(r.State + ", drained")
		}
		desired, owned := any(r.Desired), any(r.Owned)
		if r.Role != "alloc" {
			desired, owned = "", ""
		}
		cells := []any{r.Name, r.Role, state, survey.Stamp(r.SinceUnixMS), r.Addr, r.Session, desired, owned, Left(r.LeaseLeftMS), r.RouteVersion, r.Zone}
		if len(all) > 1 {
			cells = append(cells, r.Set)
		}
		t.Row(cells...)
	}
	return t
}

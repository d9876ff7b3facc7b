package ctl

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/survey"
	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

func membersCommand() *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "members",
		Short: "list all nodes: the memberlist view beside the stores' sessions",
		Args:  ExactArgs(),
	}
	o.AddTo(cmd, askTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		reply, err := onAnyNode(ctx, o, pb.AdminClient.Status, &pb.StatusRequest{})
		if err != nil {
			return err
		}
		rows := survey.Members(reply)
		return ui.Print(stdout, format, rows, func() *ui.Table { return membersTable(rows) })
	})
	return cmd
}

func membersTable(rows []survey.Member) *ui.Table {
	t := ui.NewTable("name", "role", "state", "since", "addr", "session", "desired", "owned", "lease left", "routes", "zone")
	for _, r := range rows {
		state := ui.Cell{Text: r.State, Color: ui.Green}
		if r.State != "alive" {
			state.Color = ui.Red
		}
		if r.Drained {
			state.Text, state.Color = state.Text+", drained", ui.Yellow
		}
		desired, owned := any(r.Desired), any(r.Owned)
		if r.Role != "alloc" {
			desired, owned = "", ""
		}
		t.Row(r.Name, r.Role, state, survey.Stamp(r.SinceUnixMS), r.Addr, r.Session, desired, owned, milliseconds(r.LeaseLeftMS), r.RouteVersion, r.Zone)
	}
	return t
}

package ctl

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// memberRow is one node in members.
type memberRow struct {
	Name         string `json:"name"`
	Role         string `json:"role"`
	State        string `json:"state"` // alive, dead or left, as memberlist sees it
	SinceUnixMS  int64  `json:"since_unix_ms"`
	Addr         string `json:"addr"`
	Session      string `json:"session"`
	Protocol     uint32 `json:"protocol"`
	RouteVersion uint64 `json:"route_version"`
	Desired      uint32 `json:"sections_desired"` // by the route table
	Owned        uint32 `json:"sections_owned"`   // attached at the stores
	LeaseLeftMS  int64  `json:"lease_left_ms"`    // -1: none
	Drained      bool   `json:"drained"`
}

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
		rows := []memberRow{}
		for _, m := range reply.GetMembers() {
			rows = append(rows, memberRow{m.GetName(), m.GetRole(), m.GetState(), m.GetSinceUnixMs(), m.GetAddr(), sessionText(m.GetSession()), m.GetProtocol(),
				m.GetRouteVersion(), m.GetSectionsDesired(), m.GetSectionsOwned(), m.GetLeaseLeftMs(), m.GetDrained()})
		}
		rows = sortedBy(rows, func(r memberRow) string { return r.Role + "/" + r.Name })
		return ui.Print(stdout, format, rows, func() *ui.Table { return membersTable(rows) })
	})
	return cmd
}

func membersTable(rows []memberRow) *ui.Table {
	t := ui.NewTable("name", "role", "state", "since", "addr", "session", "desired", "owned", "lease left", "routes")
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
		t.Row(r.Name, r.Role, state, stamp(r.SinceUnixMS), r.Addr, r.Session, desired, owned, milliseconds(r.LeaseLeftMS), r.RouteVersion)
	}
	return t
}

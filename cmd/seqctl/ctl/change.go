package ctl

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// changeTimeout is the default of the verbs that move sections.
const changeTimeout = 15 * time.Second

// change is what undrain, move and rebalance print.
type change struct {
	Change       string `json:"change"`
	Subject      string `json:"subject,omitempty"`
	RouteVersion uint64 `json:"route_version"`
	Moved        uint32 `json:"moved"` // sections whose desired owner changed
}

// changeVerb is one of those verbs: call asks for the change, subject names the
// argument that it is about.
func changeVerb(cmd *cobra.Command, call func(ctx context.Context, admin pb.AdminClient, args []string) (*pb.ChangeReply, error)) *cobra.Command {
	o := &Options{}
	o.AddTo(cmd, changeTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		var reply *pb.ChangeReply
		err := onAnyNode(ctx, o, func(ctx context.Context, admin pb.AdminClient) (err error) {
			reply, err = call(ctx, admin, args)
			return err
		})
		if err != nil {
			return err
		}
		result := change{Change: cmd.Name(), RouteVersion: reply.GetRouteVersion(), Moved: reply.GetMoved()}
		if len(args) > 0 {
			result.Subject = args[0]
		}
		return ui.Print(stdout, format, result, func() *ui.Table {
			return ui.NewTable("change", "subject", "routes version", "sections moved").
				Row(result.Change, result.Subject, result.RouteVersion, result.Moved)
		})
	})
	return cmd
}

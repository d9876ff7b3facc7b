package ctl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

func eventsCommand() *cobra.Command {
	o := &Options{}
	var limit int
	cmd := &cobra.Command{
		Use:   "events",
		Short: "show the latest decisions of arbiters, standbys and operators with their reasons, newest last",
		Args:  ExactArgs(),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().IntVar(&limit, "limit", 100, "how many, at least 1")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		if limit < 1 {
			return daemon.Usage(fmt.Errorf("--limit %d: expected at least 1", limit))
		}
		reply, err := onAnyNode(ctx, o, pb.AdminClient.Events, &pb.EventsRequest{Limit: uint32(limit)})
		if err != nil {
			return err
		}
		rows := survey.Events(reply)
		return ui.Print(stdout, format, rows, func() *ui.Table {
			t := ui.NewTable("id", "time", "by", "kind", "subject", "reason")
			for _, r := range rows {
				t.Row(Digits(r.ID), survey.Stamp(r.UnixMS), r.Node, r.Kind, r.Subject, r.Reason)
			}
			return t
		})
	})
	return cmd
}

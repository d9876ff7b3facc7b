package ctl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/daemon"
	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// eventRow is one decision in events.
type eventRow struct {
	ID      uint64 `json:"id"`
	UnixMS  int64  `json:"unix_ms"`
	Node    string `json:"node"` // who wrote it
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Reason  string `json:"reason"`
}

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
		rows := []eventRow{}
		for _, e := range reply.GetEvents() {
			rows = append(rows, eventRow{e.GetId(), e.GetUnixMs(), e.GetNode(), e.GetKind(), e.GetSubject(), e.GetReason()})
		}
		return ui.Print(stdout, format, rows, func() *ui.Table {
			t := ui.NewTable("id", "time", "by", "kind", "subject", "reason")
			for _, r := range rows {
				t.Row(text(r.ID), stamp(r.UnixMS), r.Node, r.Kind, r.Subject, r.Reason)
			}
			return t
		})
	})
	return cmd
}

package ids

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

func segmentListCommand() *cobra.Command {
	o := &ctl.Options{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list all tags with their limits",
		Args:  between(0, 0),
	}
	o.AddTo(cmd, askTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		reply, err := askSegment(ctx, o, o.Addr, func(ctx context.Context, c pb.SegmentClient) (*pb.SegmentListReply, error) {
			return c.List(ctx, &pb.SegmentListRequest{})
		})
		if err != nil {
			return err
		}
		rows := []tagRow{}
		for _, tag := range reply.GetTags() {
			rows = append(rows, newTagRow(tag))
		}
		return ui.Print(stdout, format, rows, func() *ui.Table { return tagTable(rows...) })
	})
	return cmd
}

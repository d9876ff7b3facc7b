package ids

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/daemon"
	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// maxStep is the largest segment, in numbers.
const maxStep = 1 << 32

// addResult is what add prints.
type addResult struct {
	tagRow
	Created bool `json:"created"` // false: it was there, and is as shown now
}

func segmentAddCommand() *cobra.Command {
	o, want := &ctl.Options{}, &pb.SegmentTag{}
	cmd := &cobra.Command{
		Use:   "add TAG",
		Short: "create a tag, or change its limits; it may be repeated",
		Long: `add creates a tag, of 1 to 128 bytes of A-Z a-z 0-9 . _ : and -. If there is one of
that name, the flags that are given change it, and the others leave it as it is.`,
		Example: "  seqctl segment add orders\n  seqctl segment add orders --start 5000000 --min-step 10000",
		Args:    between(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().Uint64Var(&want.MinStep, "min-step", 0, "smallest number of numbers reserved in one write; a new tag has 1000")
	cmd.Flags().Uint64Var(&want.MaxStep, "max-step", 0, "largest number of `numbers` reserved in one write; a new tag has 1000000")
	cmd.Flags().Uint64Var(&want.Start, "start", 0, "hand out no `number` below this one; it never falls; a new tag has 1")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		want.Tag = args[0]
		for _, limit := range []struct {
			flag        string
			value, most uint64
		}{{"min-step", want.MinStep, maxStep}, {"max-step", want.MaxStep, maxStep}, {"start", want.Start, uint64(seq.MaxSeq)}} {
			if cmd.Flags().Changed(limit.flag) && (limit.value < 1 || limit.value > limit.most) {
				return daemon.Usage(fmt.Errorf("%w: --%s %d, expected 1 to %d", seq.ErrBadArgument, limit.flag, limit.value, limit.most))
			}
		}
		reply, err := askSegment(ctx, o, o.Addr, func(ctx context.Context, c pb.SegmentClient) (*pb.SegmentPutReply, error) {
			return c.Put(ctx, &pb.SegmentPutRequest{Tag: want})
		})
		if errors.Is(err, seq.ErrRetired) {
			return fmt.Errorf("%w (seqctl segment retire %s --undo brings it back)", err, want.GetTag())
		}
		if err != nil {
			return err
		}
		r := addResult{newTagRow(reply.GetTag()), reply.GetCreated()}
		return ui.Print(stdout, format, r, func() *ui.Table { return tagTable(r.tagRow) })
	})
	return cmd
}

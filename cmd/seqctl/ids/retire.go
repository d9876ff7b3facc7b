package ids

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/daemon"
	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func namespaceRetireCommand() *cobra.Command {
	o, want := &ctl.Options{}, &pb.SnowflakeRetireNamespaceRequest{}
	cmd := &cobra.Command{
		Use:   "retire NAME",
		Short: "have a namespace hand out nothing more; --undo brings it back",
		Long: `retire has a namespace, by name or alias, hand out no more IDs: callers get RETIRED, at every node within
10 seconds. A window that a client has already been given goes on to its end. IDs are still decoded. What
is retired is left out of status, and neither add nor a config file brings it back: --undo does, and
repeats no ID, since the marks of its worker ids stay. Retire once every node runs a version that knows how to.`,
		Example: "  seqctl namespace retire orders\n  seqctl namespace retire orders --undo",
		Args:    between(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().BoolVar(&want.Undo, "undo", false, "have it hand out IDs again")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		if want.Namespace = args[0]; want.Namespace == "" {
			return daemon.Usage(fmt.Errorf("%w: empty namespace name", seq.ErrBadArgument))
		}
		reply, err := askSnowflake(ctx, o, func(ctx context.Context, c pb.SnowflakeClient) (*pb.SnowflakeNamespace, error) {
			return c.RetireNamespace(ctx, want)
		})
		if err != nil {
			return err
		}
		r := newNamespaceRow(reply)
		return ui.Print(stdout, format, r, func() *ui.Table { return namespaceTable(r) })
	})
	return cmd
}

func segmentRetireCommand() *cobra.Command {
	o, want := &ctl.Options{}, &pb.SegmentRetireRequest{}
	cmd := &cobra.Command{
		Use:   "retire TAG",
		Short: "have a tag hand out nothing more; --undo brings it back",
		Long: `retire has a tag hand out no more numbers: callers get RETIRED within 5 seconds. add does not bring
it back: --undo does, above all its numbers, since its register stays. Retire once every node runs a
version that knows how to: an older one would go on, and bring it back with the next add of any tag.`,
		Example: "  seqctl segment retire orders\n  seqctl segment retire orders --undo",
		Args:    between(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().BoolVar(&want.Undo, "undo", false, "have it hand out numbers again")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		want.Tag = args[0]
		reply, err := askSegment(ctx, o, o.Addr, func(ctx context.Context, c pb.SegmentClient) (*pb.SegmentTag, error) {
			return c.Retire(ctx, want)
		})
		if err != nil {
			return err
		}
		r := newTagRow(reply)
		return ui.Print(stdout, format, r, func() *ui.Table { return tagTable(r) })
	})
	return cmd
}

package ids

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/daemon"
	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

func namespaceAddCommand() *cobra.Command {
	o, want := &ctl.Options{}, &pb.SnowflakePutNamespaceRequest{}
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "record a namespace; with --if-version, change one",
		Long: `add records a namespace: a name of a-z, then up to 63 of a-z 0-9 . _ -, and a layout.
With --if-version, the version that show tells, it changes the one that is recorded: what
no flag names stays. A change after which IDs could be repeated is refused, and so is a layout
that has ended.`,
		Example: "  seqctl namespace add orders --layout leaf --alias 9\n" +
			"  seqctl namespace add orders --if-version 1 --overflow borrow",
		Args: between(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().StringVar(&want.Layout, "layout", "", "preset, or a layout's `text`; required for a new namespace")
	cmd.Flags().Uint32Var(&want.Alias, "alias", 0, "`number` that callers may say in place of the name; it never changes; empty: none")
	cmd.Flags().StringVar(&want.Overflow, "overflow", "", "wait, refuse or borrow when a tick is used up; empty: as the layout says")
	cmd.Flags().StringVar(&want.Rollback, "rollback", "", "refuse, borrow or wait:DURATION when a clock moved back; empty: as the layout says")
	cmd.Flags().Uint64Var(&want.Version, "if-version", 0, "change it if this is its `version`; 0: it is new")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		want.Name = args[0]
		if err := checkNamespace(want); err != nil {
			return err
		}
		reply, err := askSnowflake(ctx, o, func(ctx context.Context, c pb.SnowflakeClient) (*pb.SnowflakeNamespace, error) {
			return c.PutNamespace(ctx, want)
		})
		if errors.Is(err, seq.ErrConflict) {
			return fmt.Errorf("%w (seqctl namespace show %s tells its version, --if-version changes that one)", err, want.GetName())
		}
		if errors.Is(err, seq.ErrRetired) {
			return fmt.Errorf("%w (seqctl namespace retire %s --undo brings it back)", err, want.GetName())
		}
		if err != nil {
			return err
		}
		r := newNamespaceRow(reply)
		if err := ui.Print(stdout, format, r, func() *ui.Table { return namespaceTable(r) }); err != nil || format != ui.FormatTable {
			return err
		}
		if end := time.UnixMilli(reply.GetLayout().GetExhaustedUnixMs()); time.Until(end) <= snowflake.ExhaustionWarning {
			fmt.Fprintf(stdout, "warning: its layout ends on %s, in %d days\n", end.UTC().Format(time.DateOnly), time.Until(end)/(24*time.Hour))
		}
		return nil
	})
	return cmd
}

// checkNamespace finds what is wrong whatever the cluster has: daemon.ErrUsage.
func checkNamespace(want *pb.SnowflakePutNamespaceRequest) error {
	if want.GetLayout() != "" {
		if _, err := parseLayout("--layout", want.GetLayout()); err != nil {
			return err
		}
	}
	if want.GetOverflow() != "" {
		if _, err := snowflake.ParseOverflow(want.GetOverflow()); err != nil {
			return badLayout("--overflow", err)
		}
	}
	if want.GetRollback() != "" {
		if _, _, err := snowflake.ParseRollback(want.GetRollback()); err != nil {
			return badLayout("--rollback", err)
		}
	}
	if want.GetName() == "" {
		return daemon.Usage(fmt.Errorf("%w: empty namespace name", seq.ErrBadArgument))
	}
	return nil
}

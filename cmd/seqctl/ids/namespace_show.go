package ids

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/daemon"
	"github.com/seqsvr/seqsvr/internal/ui"
	"github.com/seqsvr/seqsvr/seq"
)

func namespaceShowCommand() *cobra.Command {
	o := &ctl.Options{}
	cmd := &cobra.Command{
		Use:     "show NAME",
		Example: "  seqctl namespace show orders",
		Short:   "show one namespace, by name or alias: its layout, policies and version",
		Args:    between(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		if args[0] == "" { // would mean all
			return daemon.Usage(fmt.Errorf("%w: empty namespace name", seq.ErrBadArgument))
		}
		reply, err := askNamespaces(ctx, o, args[0])
		if err != nil {
			return err
		}
		if len(reply.GetNamespaces()) != 1 {
			return fmt.Errorf("%w: %q: got %d", seq.ErrUnknownNamespace, args[0], len(reply.GetNamespaces()))
		}
		r := newNamespaceRow(reply.GetNamespaces()[0])
		return ui.Print(stdout, format, r, func() *ui.Table { return namespaceTable(r) })
	})
	return cmd
}

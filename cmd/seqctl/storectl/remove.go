package storectl

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
)

func removeCommand() *cobra.Command {
	o := &options{}
	var force string
	cmd := &cobra.Command{
		Use:     "remove NAME",
		Short:   "do without a store; N, R and W change with it",
		Example: "  seqctl store remove store-5",
		Args:    ctl.ExactArgs("NAME"),
	}
	o.addTo(cmd, changeTimeout)
	o.addAnyZones(cmd)
	cmd.Flags().StringVar(&force, "force", "", "`reason` why fewer than three are to be left; empty: they are not")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		return o.change(ctx, format, stdout, "remove", func(c *storeadmin.Care) ([]storeadmin.Step, error) { return c.Remove(args[0], force) })
	})
	return cmd
}

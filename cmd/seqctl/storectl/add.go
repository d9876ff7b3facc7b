package storectl

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
)

func addCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:     "add ADDR",
		Short:   "take a store that storesvr init --learner made in as one more; N, R and W change with it",
		Example: "  seqctl store add 10.0.0.9:7500",
		Args:    ctl.ExactArgs("ADDR"),
	}
	o.addTo(cmd, changeTimeout)
	o.addAnyZones(cmd)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		return o.change(ctx, format, stdout, "add", func(c *storeadmin.Care) ([]storeadmin.Step, error) { return c.Add(ctx, args[0]) })
	})
	return cmd
}

package storectl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
)

func replaceCommand() *cobra.Command {
	o := &options{}
	var old, fresh, force string
	cmd := &cobra.Command{
		Use:   "replace --dead NAME --new ADDR",
		Short: "put a store that storesvr init --learner made in the place of a dead one",
		Long: `replace puts a new store in the place of a dead or distrusted one, while the cluster serves.

The new store is made by storesvr init --learner --join ADDR and started first. It is filled from
all others, waits until every lease from before has ended, and votes then. A replace that was
killed goes on with the same command.`,
		Example: "  seqctl store replace --dead store-2 --new 10.0.0.9:7500",
		Args:    ctl.ExactArgs(),
	}
	o.addTo(cmd, changeTimeout)
	o.addAnyZones(cmd)
	cmd.Flags().StringVar(&old, "dead", "", "`name` or uuid of the store to be replaced; required")
	cmd.Flags().StringVar(&fresh, "new", "", "gRPC `address` of the new store; required")
	cmd.Flags().StringVar(&force, "force", "", "`reason` why a store that serves is to be replaced; empty: it is not")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		if old == "" || fresh == "" {
			return daemon.Usage(fmt.Errorf("expected --dead NAME and --new ADDR"))
		}
		return o.change(ctx, format, stdout, "replace", func(c *storeadmin.Care) ([]storeadmin.Step, error) {
			return c.Replace(ctx, old, fresh, force)
		})
	})
	return cmd
}

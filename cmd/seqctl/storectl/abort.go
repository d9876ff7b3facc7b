package storectl

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
)

func abortCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "abort",
		Short: "go back to the stores from before a replace or add that is half done",
		Args:  ctl.ExactArgs(),
	}
	o.addTo(cmd, changeTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		return o.change(ctx, format, stdout, "abort", (*storeadmin.Care).Abort)
	})
	return cmd
}

package authctl

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

func keyCommand() *cobra.Command {
	var o options
	var out string
	cmd := &cobra.Command{
		Use:   "key",
		Short: "draw a key that backups are signed with (seqctl store backup --sign-key)",
		Long: `Writes a key of 32 random bytes. Keep it apart from the backups: whoever has it can make one that
holds. Nothing is overwritten.`,
		Example: "  seqctl auth key --out backup.key",
		Args:    ctl.ExactArgs(),
	}
	o.addTo(cmd)
	cmd.Flags().StringVar(&out, "out", "", "`file` for the key, mode 0600; required")
	cmd.RunE = o.verb(func(_ *cobra.Command, format ui.Format, _ []string, stdout io.Writer) error {
		if out == "" {
			return daemon.Usage(errors.New("expected --out FILE"))
		}
		if err := auth.WriteSecret(out, auth.NewKey()); err != nil {
			return err
		}
		made := struct {
			File string `json:"file"`
		}{out}
		return ui.Print(stdout, format, made, func() *ui.Table { return ui.NewTable("KEY").Row(out) })
	})
	return cmd
}

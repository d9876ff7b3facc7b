package authctl

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

// listed is one principal.
type listed struct {
	Principal string   `json:"principal"`
	Tokens    int      `json:"tokens"`
	Grants    []string `json:"grants"`
}

func listCommand() *cobra.Command {
	var o options
	var policy string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the principals of a policy, their grants and how many tokens they have",
		Args:  ctl.ExactArgs(),
	}
	o.addTo(cmd)
	cmd.Flags().StringVar(&policy, "policy", "", "policy `file`; required")
	cmd.RunE = o.verb(func(_ *cobra.Command, format ui.Format, _ []string, stdout io.Writer) error {
		if policy == "" {
			return daemon.Usage(errors.New("expected --policy FILE"))
		}
		p, err := auth.ReadPolicy(policy)
		if err != nil {
			return err
		}
		all := []listed{}
		for _, one := range p.Principals {
			row := listed{one.ID(), len(one.Tokens), []string{}}
			for _, g := range one.Grants {
				row.Grants = append(row.Grants, g.String())
			}
			all = append(all, row)
		}
		return ui.Print(stdout, format, all, func() *ui.Table {
			t := ui.NewTable("PRINCIPAL", "TOKENS", "GRANTS")
			for _, one := range all {
				t.Row(one.Principal, one.Tokens, strings.Join(one.Grants, " "))
			}
			return t
		})
	})
	return cmd
}

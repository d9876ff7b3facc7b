package authctl

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

// errRefused is a call that the policy does not allow.
var errRefused = errors.New("refused")

// tried is the output of try.
type tried struct {
	Asked     string `json:"asked"`
	Principal string `json:"principal"` // empty if the caller is unknown
	Allowed   bool   `json:"allowed"`
	Reason    string `json:"reason"` // the reason of a refusal; empty if allowed
}

func tryCommand() *cobra.Command {
	var o options
	var policy, token, file, as string
	cmd := &cobra.Command{
		Use:   "try METHOD|SCOPE:VERB ...",
		Short: "tell what a policy says of a call",
		Long: `Asks a policy file, and no cluster, whether a token or the holder of a certificate may do
something. METHOD is such as Sequence.Next; a scope with its verb is such as user:take,
namespace/orders:take, tag/invoices:take or user:raise=1000, by so much. Fails if anything is refused.`,
		Example: `  seqctl auth try --policy policy.yaml --token-file chat.token Sequence.Next user:take
  seqctl auth try --policy policy.yaml --as operator/ops Admin.Drain`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return daemon.Usage(fmt.Errorf("try: 0 arguments: expected seqctl auth %s", cmd.Use))
			}
			return nil
		},
	}
	o.addTo(cmd)
	cmd.Flags().StringVar(&policy, "policy", "", "policy `file`; empty: none, as of a daemon without one")
	cmd.Flags().StringVar(&token, "token", "", "the `token`, which others see in the list of processes; empty: none")
	cmd.Flags().StringVar(&file, "token-file", "", "`file` with the token; empty: none")
	cmd.Flags().StringVar(&as, "as", "", "`ROLE/NAME` of a certificate, such as router/r1; empty: none")
	cmd.RunE = o.verb(func(_ *cobra.Command, format ui.Format, args []string, stdout io.Writer) error {
		who, err := whoOf(token, file, as)
		if err != nil {
			return err
		}
		guard, err := auth.New(auth.Config{Mode: auth.Require, Cluster: anyCluster, PolicyFile: policy})
		if err != nil {
			return err
		}
		var all []tried
		refused := 0
		for _, text := range args {
			one, err := ask(guard, who, text)
			if err != nil {
				return err
			}
			if !one.Allowed {
				refused++
			}
			all = append(all, one)
		}
		err = ui.Print(stdout, format, all, func() *ui.Table {
			t := ui.NewTable("ASKED", "PRINCIPAL", "ANSWER")
			for _, one := range all {
				answer := "allowed"
				if !one.Allowed {
					answer = one.Reason
				}
				t.Row(one.Asked, one.Principal, answer)
			}
			return t
		})
		if err == nil && refused > 0 {
			err = fmt.Errorf("%w: %d of %d", errRefused, refused, len(all))
		}
		return err
	})
	return cmd
}

// anyCluster stands for the cluster, which a policy does not know.
const anyCluster = "any"

func whoOf(token, file, as string) (who auth.Credentials, err error) {
	given := 0
	for _, text := range []string{token, file, as} {
		if text != "" {
			given++
		}
	}
	if given > 1 {
		return who, daemon.Usage(errors.New("--token, --token-file and --as: expected one of them, or none"))
	}
	who.Token = token
	if file != "" {
		read, err := auth.ReadToken(file)
		if err != nil {
			return who, err
		}
		who.Token = read.Secret()
	}
	if as != "" {
		id, err := auth.ParseIdentity("spiffe://"+anyCluster+"/"+as, anyCluster)
		if err != nil {
			return who, daemon.Usage(fmt.Errorf("--as %q: %w", as, err))
		}
		who.Evidence = auth.Evidence{Identity: id, Until: time.Now().Add(time.Hour)}
	}
	return who, nil
}

func ask(guard *auth.Guard, who auth.Credentials, text string) (tried, error) {
	one := tried{Asked: text}
	method, demands := "", []auth.Demand(nil)
	if strings.Contains(text, ":") {
		d, err := auth.ParseDemand(text)
		if err != nil {
			return one, err
		}
		demands = append(demands, d)
	} else {
		var err error
		if method, err = auth.FindMethod(text); err != nil {
			return one, err
		}
	}
	by, err := guard.Try(who, method, demands...)
	one.Principal, one.Allowed = by, err == nil
	if err != nil {
		one.Reason = err.Error()
	}
	return one, nil
}

package authctl

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

// made is the output of token.
type made struct {
	Principal string `json:"principal"`
	Token     string `json:"token,omitempty"` // unless it was written to a file
	File      string `json:"file,omitempty"`
	Policy    string `json:"policy,omitempty"` // the file that has it now
	Entry     string `json:"entry,omitempty"`  // what a policy file is to have
}

func tokenCommand() *cobra.Command {
	var o options
	e := auth.Entry{}
	var policy, out string
	cmd := &cobra.Command{
		Use:   "token",
		Short: "draw a token for a principal",
		Long: `Draws a token of 32 random bytes and shows it once: a policy file keeps its SHA-256 only.
With --policy the principal is added to that file, or gets one more token if it is there;
without, the lines for it are printed.

A grant is SPACE:VERBS, namespace/NAME:take or tag/NAME:VERBS. Verbs are take, read and raise;
with them may stand max-raise=N, how far above its number a raise may lift a key, rate=N, in keys
a second, and burst=N. A name may end in *.`,
		Example: "  seqctl auth token --name chat --role caller --grant user:take,read,rate=50000 --policy policy.yaml --out chat.token",
		Args:    ctl.ExactArgs(),
	}
	o.addTo(cmd)
	cmd.Flags().StringVar(&e.Name, "name", "", "`name` of the principal; required")
	cmd.Flags().StringVar((*string)(&e.Role), "role", string(auth.Caller), "caller, reader or operator")
	cmd.Flags().StringArrayVar(&e.Grants, "grant", nil, "a `grant` of a caller; may be repeated; empty: none")
	cmd.Flags().StringVar(&policy, "policy", "", "policy `file` to add it to; empty: none, the lines are printed")
	cmd.Flags().StringVar(&out, "out", "", "`file` for the token, mode 0600; empty: it is printed")
	cmd.RunE = o.verb(func(_ *cobra.Command, format ui.Format, _ []string, stdout io.Writer) error {
		token := auth.NewToken()
		e.Token = token.Hash()
		r := made{Principal: string(e.Role) + "/" + e.Name, Policy: policy}
		entry, err := e.Text() // what is wrong is told before anything is written
		if err != nil {
			return daemon.Usage(err)
		}
		if out == "" {
			r.Token = token.Secret()
		} else {
			r.File = out
			if err := auth.WriteSecret(out, []byte(token.Secret()+"\n")); err != nil {
				return err
			}
		}
		if policy == "" {
			r.Entry = entry
		} else if err := auth.AddToken(policy, e); err != nil {
			if out != "" {
				_ = os.Remove(out) // nobody knows it
			}
			return err
		}
		return r.print(stdout, format)
	})
	return cmd
}

func (r made) print(w io.Writer, format ui.Format) error {
	if format != ui.FormatTable {
		return ui.Print(w, format, r, nil)
	}
	text := r.Token
	if text == "" {
		text = r.Principal + ": token in " + r.File
	}
	if r.Entry != "" {
		text += "\n\n# for the policy file:\n" + r.Entry
	} else {
		text += "\n"
	}
	_, err := fmt.Fprint(w, text)
	return err
}

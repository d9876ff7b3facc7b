package authctl

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

// How long what is signed holds, unless said otherwise.
const (
	caValid   = 10 * 365 * 24 * time.Hour
	certValid = 90 * 24 * time.Hour
)

// Command is `seqctl auth`.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "auth",
		Short: "make certificates with roles, tokens and keys, list and try a policy; no cluster needed",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return daemon.Usage(fmt.Errorf("unknown verb %q: seqctl auth --help lists them", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(caCommand(), certCommand(), tokenCommand(), keyCommand(), tryCommand(), listCommand())
	return cmd
}

// options are the options of all verbs.
type options struct{ output string }

func (o *options) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.output, "output", "o", string(ui.FormatTable), "table, json or yaml")
}

// verb names errors, and marks those that another command line cures.
func (o *options) verb(do func(cmd *cobra.Command, format ui.Format, args []string, stdout io.Writer) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		format, err := ui.ParseFormat(o.output)
		if err != nil {
			err = daemon.Usage(err)
		} else {
			err = do(cmd, format, args, cmd.OutOrStdout())
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, auth.ErrBadName), errors.Is(err, auth.ErrBadGrant):
			err = daemon.Usage(err)
		}
		return fmt.Errorf("auth %s: %w", cmd.Name(), err)
	}
}

// files lists the files that a verb has written.
type files struct {
	Identity    string `json:"identity,omitempty"`
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

func (f files) print(w io.Writer, format ui.Format) error {
	return ui.Print(w, format, f, func() *ui.Table {
		return ui.NewTable("IDENTITY", "CERTIFICATE", "KEY").Row(f.Identity, f.Certificate, f.Key)
	})
}

func caCommand() *cobra.Command {
	var o options
	var cluster, dir string
	var valid time.Duration
	cmd := &cobra.Command{
		Use:   "ca",
		Short: "make the CA of a cluster's certificates",
		Long: `Writes ca.pem, for --tls-ca of everything, and ca-key.pem, which signs and belongs on no
machine of the cluster. Nothing is overwritten.`,
		Example: "  seqctl auth ca --cluster shop --dir ca",
		Args:    ctl.ExactArgs(),
	}
	o.addTo(cmd)
	cmd.Flags().StringVar(&cluster, "cluster", "", "`id` of the cluster, as storesvr init got it; required")
	cmd.Flags().StringVar(&dir, "dir", ".", "`directory` for the two files, which is made")
	cmd.Flags().DurationVar(&valid, "valid", caValid, "how long it holds")
	cmd.RunE = o.verb(func(_ *cobra.Command, format ui.Format, _ []string, stdout io.Writer) error {
		if err := checkValid(valid); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := auth.MakeCA(dir, cluster, valid); err != nil {
			return err
		}
		return files{"spiffe://" + cluster, filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem")}.print(stdout, format)
	})
	return cmd
}

func checkValid(d time.Duration) error {
	if d <= 0 {
		return daemon.Usage(fmt.Errorf("--valid %v: expected more than 0", d))
	}
	return nil
}

func certCommand() *cobra.Command {
	var o options
	var c auth.Cert
	var ca, out string
	cmd := &cobra.Command{
		Use:   "cert",
		Short: "sign a certificate with a role",
		Long: `Writes ROLE-NAME.pem, the certificate, and ROLE-NAME-key.pem, its key. A store, an AllocSvr and
a router need --hosts: what others dial them by. A node of another Set of the same system is of that
Set's cluster, --cluster; the policy names all of them under clusters. Callers, readers and operators are principals of
that name in the policy as well.`,
		Example: "  seqctl auth cert --ca ca --role alloc --name a1 --hosts a1.internal,10.0.0.11",
		Args:    ctl.ExactArgs(),
	}
	o.addTo(cmd)
	cmd.Flags().StringVar(&ca, "ca", ".", "`directory` of the CA")
	cmd.Flags().StringVar(&c.Cluster, "cluster", "", "`id` of the cluster that it is of; empty: that of the CA")
	cmd.Flags().StringVar((*string)(&c.Role), "role", "", "store, alloc, router, caller, operator or reader; required")
	cmd.Flags().StringVar(&c.Name, "name", "", "`name` of the node or principal; required")
	cmd.Flags().StringSliceVar(&c.Hosts, "hosts", nil, "DNS `names` and IP addresses that it is dialled by; empty: none")
	cmd.Flags().DurationVar(&c.Valid, "valid", certValid, "how long it holds, to the end of the CA at most")
	cmd.Flags().StringVar(&out, "out", ".", "`directory` for the two files")
	cmd.RunE = o.verb(func(_ *cobra.Command, format ui.Format, _ []string, stdout io.Writer) error {
		if err := checkValid(c.Valid); err != nil {
			return err
		}
		if server := c.Role == auth.Store || c.Role == auth.Alloc || c.Role == auth.Router; server && len(c.Hosts) == 0 {
			return daemon.Usage(fmt.Errorf("--role %s: expected --hosts, what it is dialled by", c.Role))
		}
		signer, err := auth.OpenCA(ca)
		if err != nil {
			return err
		}
		base := filepath.Join(out, string(c.Role)+"-"+c.Name)
		f := files{Certificate: base + ".pem", Key: base + "-key.pem"}
		id, err := signer.Issue(c, f.Certificate, f.Key)
		if err != nil {
			return err
		}
		f.Identity = id.URI()
		return f.print(stdout, format)
	})
	return cmd
}

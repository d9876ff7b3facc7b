package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/auth"
	"github.com/seqsvr/seqsvr/internal/daemon"
	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/internal/ui"
)

// DefaultAddr is where `seqctl dev` listens, and where the other verbs look.
const DefaultAddr = "127.0.0.1:7400"

// Root is the command without verbs that load or run clusters; add those to it.
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:   "seqctl",
		Short: "runs, asks and operates a cluster of per-user sequences",
		Long: `seqctl runs, asks and operates a cluster of per-user sequences.

Exit codes: 0 done, 1 failed, 2 wrongly called.`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return daemon.Usage(fmt.Errorf("unknown verb %q: seqctl --help lists them", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return daemon.Usage(fmt.Errorf("%s: %w", cmd.Name(), err))
	})
	root.AddCommand(nextCommand(), currentCommand(), raiseCommand(), statusCommand(), membersCommand(), routeCommand(),
		leasesCommand(), eventsCommand(), drainCommand(), undrainCommand(), moveCommand(), rebalanceCommand(), gossipKeyCommand())
	return root
}

// Execute runs root with the arguments. Errors of the command line are
// daemon.ErrUsage; others name the verb.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) error {
	if args == nil {
		args = []string{} // nil would mean os.Args
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}

// Options are the flags that every verb asking a cluster has.
type Options struct {
	Addr    string        // gRPC address of a router or AllocSvr
	Timeout time.Duration // of the whole verb, retries included

	output    string
	files     rpc.TLSFiles
	cluster   string
	tokenFile string
	dial      []grpc.DialOption // set by Check; nil: plaintext
}

// Dial secures connections as --tls-ca, --tls-cert and --tls-key say, and sends the token of
// --token-file; nothing before Check, or without them.
func (o *Options) Dial() []grpc.DialOption { return slices.Clone(o.dial) }

// AddTo declares --addr, --timeout, -o and what Dial goes by on a verb. timeout is the
// default.
func (o *Options) AddTo(cmd *cobra.Command, timeout time.Duration) {
	addr := DefaultAddr
	if set, ok := os.LookupEnv("SEQ_ADDR"); ok && set != "" {
		addr = set
	}
	cmd.Flags().StringVar(&o.Addr, "addr", addr, "gRPC `address` of a router or AllocSvr (or SEQ_ADDR)")
	cmd.Flags().StringVar(&o.files.CA, "tls-ca", os.Getenv("SEQ_TLS_CA"), "PEM `file` of the CAs that the cluster's certificates are signed by (or SEQ_TLS_CA); empty: plaintext")
	cmd.Flags().StringVar(&o.files.Cert, "tls-cert", os.Getenv("SEQ_TLS_CERT"), "PEM `file` of a certificate to show (or SEQ_TLS_CERT); empty: none")
	cmd.Flags().StringVar(&o.files.Key, "tls-key", os.Getenv("SEQ_TLS_KEY"), "PEM `file` of its key (or SEQ_TLS_KEY); required with --tls-cert")
	cmd.Flags().StringVar(&o.cluster, "tls-cluster", os.Getenv("SEQ_TLS_CLUSTER"), "`id` of the cluster of which servers must show a role in their certificates (or SEQ_TLS_CLUSTER); empty: not looked at")
	cmd.Flags().StringVar(&o.tokenFile, "token-file", os.Getenv("SEQ_TOKEN_FILE"), "`file` with a token to show, mode 0600, over TLS only (or SEQ_TOKEN_FILE); empty: none")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", timeout, "how long to try, retries included")
	cmd.Flags().StringVarP(&o.output, "output", "o", string(ui.FormatTable), "table, json or yaml")
}

// Check reads -o and looks at the other flags; what is wrong is daemon.ErrUsage.
func (o *Options) Check() (ui.Format, error) {
	format, err := ui.ParseFormat(o.output)
	switch {
	case err != nil:
		return "", daemon.Usage(err)
	case o.Timeout <= 0:
		return "", daemon.Usage(fmt.Errorf("--timeout %v: expected more than 0", o.Timeout))
	}
	if err := o.secure(); err != nil {
		return "", daemon.Usage(err)
	}
	return format, checkAddr(o.Addr)
}

// secure makes what Dial gives.
func (o *Options) secure() error {
	secured, err := rpc.NewTLS(o.files, nil)
	switch {
	case err != nil:
		return err
	case secured == nil && (o.cluster != "" || o.tokenFile != ""):
		return errors.New("--tls-cluster and --token-file: expected --tls-ca beside them")
	case o.cluster != "":
		secured.Identify(o.cluster, true)
	}
	o.dial = secured.DialOptions(auth.Store, auth.Alloc, auth.Router)
	if o.tokenFile == "" {
		return nil
	}
	token, err := rpc.TokenFile(o.tokenFile)
	o.dial = append(o.dial, grpc.WithPerRPCCredentials(token))
	return err
}

// Verb wraps what a verb does: the shared flags are checked first, ctx
// ends with --timeout, and errors name the verb and what did not answer.
func (o *Options) Verb(run func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		format, err := o.Check()
		if err == nil {
			ctx, cancel := context.WithTimeout(cmd.Context(), o.Timeout)
			defer cancel()
			err = plain(o.Addr, run(ctx, format, args, cmd.OutOrStdout()))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", cmd.Name(), err)
		}
		return nil
	}
}

// ExactArgs is cobra.ExactArgs with a usage error that says what was expected.
func ExactArgs(names ...string) cobra.PositionalArgs { return RangeArgs(len(names), len(names)) }

// RangeArgs asks for least to most arguments.
func RangeArgs(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		return wrongArgs(cmd, len(args))
	}
}

func wrongArgs(cmd *cobra.Command, got int) error {
	_, arguments, _ := strings.Cut(cmd.Use, " ")
	return daemon.Usage(fmt.Errorf("%s: %d arguments: expected %s", cmd.Name(), got, strings.TrimSpace(cmd.CommandPath()+" "+arguments)))
}

package ctl

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/base/config"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
)

// DefaultAddr is where `seqctl dev` listens, and where the other verbs look.
const DefaultAddr = "127.0.0.1:7400"

// Root returns the command without verbs that load or run clusters; add those to it.
func Root() *cobra.Command {
	root := Group(&cobra.Command{
		Use:   "seqctl",
		Short: "runs, asks and operates a cluster of per-user sequences",
		Long: `seqctl runs, asks and operates a cluster of per-user sequences.

Try it: seqctl dev in one terminal, and seqctl next 42 in another.

Exit codes: 0 done, 1 failed, 2 wrongly called.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}, nextCommand(), openCommand(), doneCommand(), markCommand(), watchCommand(), lookupCommand(), currentCommand(), raiseCommand(), exportCommand(), statusCommand(), membersCommand(), routeCommand(),
		leasesCommand(), eventsCommand(), drainCommand(), undrainCommand(), moveCommand(), rebalanceCommand(), spaceCommand(), gossipKeyCommand(),
		contextCommand(), completionCommand())
	root.SetFlagErrorFunc(wrongFlag)
	return root
}

// Execute runs root with the arguments. Errors of the command line are
// daemon.ErrUsage; all of them name the verb.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) error {
	if args == nil {
		args = []string{} // nil would mean os.Args
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	completeAll(root)
	strict(root)
	if err := config.CheckEnvironment(os.Environ()); err != nil {
		return daemon.Usage(err)
	}
	cmd, err := root.ExecuteContextC(ctx)
	return named(cmd, err)
}

// strict has all flags that are whole numbers refuse leading zeros.
func strict(cmd *cobra.Command) {
	config.Strict(cmd.Flags())
	config.Strict(cmd.PersistentFlags())
	for _, verb := range cmd.Commands() {
		strict(verb)
	}
}

// Options are the flags of every verb that queries a cluster.
type Options struct {
	// Addr is the gRPC address of the router or AllocSvr that is queried. It is the first of --addr, or
	// after Seed the first that answered.
	Addr    string
	Timeout time.Duration // of the whole verb, retries included

	connection
	contextName string
	inContext   bool // what no flag said is of a context
	output      string
	local       bool              // nothing is dialled
	flags       *pflag.FlagSet    // that AddTo declared them on
	dial        []grpc.DialOption // set by Check; nil means plaintext
	found       bool              // Addr answered
}

// Dial secures connections as --tls-ca, --tls-cert and --tls-key say, and sends the token of
// --token-file; nothing before Check, or without them.
func (o *Options) Dial() []grpc.DialOption { return slices.Clone(o.dial) }

// AddTo declares --addr, --context, --timeout, -o and the flags of Dial on a verb. The argument timeout is
// the default.
func (o *Options) AddTo(cmd *cobra.Command, timeout time.Duration) {
	o.flags = cmd.Flags()
	o.addTo(o.flags, environment, DefaultAddr)
	o.flags.StringVar(&o.contextName, "context", os.Getenv(variable("context")), "`name` of a context (or SEQ_CONTEXT), see seqctl context; empty: the one in use, unless an address is named")
	o.flags.DurationVar(&o.Timeout, "timeout", timeout, "how long to try, retries included")
	addOutput(cmd, &o.output)
}

// AddLocalTo declares -o alone, on a verb that asks no cluster.
func (o *Options) AddLocalTo(cmd *cobra.Command) {
	o.local, o.Timeout = true, time.Hour
	addOutput(cmd, &o.output)
}

func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", string(ui.FormatTable), "table, json or yaml")
}

// Check parses -o and checks the other flags. It returns daemon.ErrUsage.
func (o *Options) Check() (ui.Format, error) {
	format, err := ui.ParseFormat(o.output)
	switch {
	case err != nil:
		return "", daemon.Usage(err)
	case o.Timeout <= 0:
		return "", daemon.Usage(fmt.Errorf("--timeout %v: expected more than 0", o.Timeout))
	case o.local:
		return format, nil
	}
	if err := o.context(o.flags); err != nil {
		return "", daemon.Usage(err)
	}
	if o.dial, err = o.check(); err != nil {
		return "", err
	}
	o.Addr, o.found = o.Addrs[0], len(o.Addrs) == 1
	return format, nil
}

// Verb wraps what a verb does: the shared flags are checked first, ctx
// ends with --timeout, and errors name what did not answer.
func (o *Options) Verb(run func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		format, err := o.Check()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), o.Timeout)
		defer cancel()
		err = run(ctx, format, args, cmd.OutOrStdout())
		return plain(o.Addr, err)
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
	return daemon.Usage(fmt.Errorf("%d arguments: expected %s", got, strings.TrimSpace(cmd.CommandPath()+" "+arguments)))
}

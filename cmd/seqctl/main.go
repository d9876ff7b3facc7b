// Command seqctl runs, asks and operates a cluster; seqctl --help lists its verbs.
package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/authctl"
	"github.com/seqsvr/seqsvr/cmd/seqctl/bench"
	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/cmd/seqctl/dev"
	"github.com/seqsvr/seqsvr/cmd/seqctl/drill"
	"github.com/seqsvr/seqsvr/cmd/seqctl/etcdverbs"
	"github.com/seqsvr/seqsvr/cmd/seqctl/ids"
	"github.com/seqsvr/seqsvr/cmd/seqctl/replay"
	"github.com/seqsvr/seqsvr/cmd/seqctl/setctl"
	"github.com/seqsvr/seqsvr/cmd/seqctl/storectl"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
)

func main() { os.Exit(daemon.Tool("seqctl", os.Args[1:], run)) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return ctl.Execute(ctx, root(), args, stdout, stderr)
}

// root is the command with all its verbs.
func root() *cobra.Command {
	root := ctl.Root()
	root.AddCommand(dev.Command(), replay.Command(), drill.Command())
	root.AddCommand(ids.Commands()...)
	root.AddCommand(bench.Commands()...)
	root.AddCommand(storectl.Command(), setctl.Command(), etcdverbs.Command(), authctl.Command())
	return root
}

// Command seqctl runs, asks and operates a cluster; seqctl --help lists its verbs.
package main

import (
	"context"
	"io"
	"os"
	"strings"

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

// groups are the parts of the help, with their verbs in order.
var groups = []struct{ title, verbs string }{
	{"Start here:", "dev next current status"},
	{"Numbers and IDs:", "lookup open done mark watch raise export snowflake namespace segment number"},
	{"Look at a cluster:", "members route leases events"},
	{"Operate a cluster:", "drain undrain move rebalance space set store etcd"},
	{"Test and measure:", "bench check drill replay"},
	{"Set up seqctl and daemons:", "context completion auth gossip-key help"},
}

// root returns the command with all its verbs, each in its group.
func root() *cobra.Command {
	root := ctl.Root()
	root.AddCommand(dev.Command(), replay.Command(), drill.Command())
	root.AddCommand(ids.Commands()...)
	root.AddCommand(bench.Commands()...)
	root.AddCommand(storectl.Command(), setctl.Command(), etcdverbs.Command(), authctl.Command())
	root.InitDefaultHelpCmd()
	cobra.EnableCommandSorting = false // the verbs stand in the order in which they were added
	all := map[string]*cobra.Command{}
	for _, verb := range root.Commands() {
		all[verb.Name()] = verb
	}
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, name := range strings.Fields(g.verbs) {
			verb := all[name]
			root.RemoveCommand(verb)
			verb.GroupID = g.title
			root.AddCommand(verb) // again, behind the verbs before it
		}
	}
	return root
}

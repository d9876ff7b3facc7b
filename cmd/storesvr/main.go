// Command storesvr is StoreSvr, one replica of the cluster's registers: `storesvr init`
// makes its database, `storesvr serve` answers from it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/seqsvr/seqsvr/internal/daemon"
)

const help = `storesvr is one replica of a cluster's registers.

  storesvr init     makes the database; nothing else ever does
  storesvr serve    answers from it until SIGTERM
  storesvr config   print or validate: the settings of serve, from all their sources
  storesvr version  [-o json]

Each verb takes --help.`

func main() { os.Exit(daemon.Main("storesvr", os.Args[1:], run)) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	verbs := map[string]func(context.Context, []string, io.Writer, io.Writer) error{"init": runInit, "serve": runServe, "config": runConfig}
	if len(args) > 0 {
		if verb := verbs[args[0]]; verb != nil {
			return verb(ctx, args[1:], stdout, stderr)
		}
		if slices.Contains([]string{"--help", "-h", "help"}, args[0]) {
			_, err := fmt.Fprintln(stderr, help)
			return err
		}
	}
	return daemon.Usage(fmt.Errorf("arguments %q: expected a verb: init, serve, config or version (each takes --help)", args))
}

// Command storesvr is StoreSvr, one replica of the cluster's registers: `storesvr init`
// makes its database, `storesvr serve` answers from it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
)

const help = `storesvr is one replica of a cluster's registers.

  storesvr init     makes the database; nothing else ever does
  storesvr serve    answers from it until SIGTERM
  storesvr config   print or validate: the settings of serve, from all their sources
  storesvr version  [-o json]

Each verb takes --help.`

func main() { os.Exit(daemon.Main("storesvr", os.Args[1:], run)) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "init":
			return runInit(ctx, args[1:], stderr)
		case "serve":
			return runServe(ctx, args[1:], stdout, stderr)
		case "config":
			return runServe(ctx, args, stdout, stderr)
		case "--help", "-h", "help":
			_, err := fmt.Fprintln(stderr, help)
			return err
		}
	}
	return daemon.Usage(fmt.Errorf("arguments %q: expected a verb: init, serve, config or version (each takes --help)", args))
}

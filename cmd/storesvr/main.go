// Command storesvr is StoreSvr, one replica of the cluster's registers: `storesvr init`
// makes its database, `storesvr serve` answers from it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/seqsvr/seqsvr/internal/daemon"
)

func main() { os.Exit(daemon.Main("storesvr", os.Args[1:], run)) }

func run(ctx context.Context, args []string, _, stderr io.Writer) error {
	verbs := map[string]func(context.Context, []string, io.Writer) error{"init": runInit, "serve": runServe}
	if len(args) > 0 {
		if verb := verbs[args[0]]; verb != nil {
			return verb(ctx, args[1:], stderr)
		}
	}
	return daemon.Usage(fmt.Errorf("arguments %q: expected a verb: init, serve or version (each takes --help)", args))
}

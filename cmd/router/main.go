// Command router forwards calls of clients without the SDK to the AllocSvr that own
// their UIDs, over gRPC and HTTP.
package main

import (
	"context"
	"io"
	"os"

	"github.com/seqsvr/seqsvr/internal/daemon"
	"github.com/seqsvr/seqsvr/router"
)

func main() { os.Exit(daemon.Main("router", os.Args[1:], run)) }

func run(ctx context.Context, args []string, _, stderr io.Writer) error {
	o, err := load(args, os.LookupEnv, stderr)
	if err != nil {
		return err
	}
	r, err := router.New(o.Config)
	if err != nil {
		return usageOf(err)
	}
	defer r.Close()
	return r.Run(ctx)
}

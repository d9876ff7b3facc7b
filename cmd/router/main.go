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

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	load := func(args []string) (*options, error) { return load(args, os.LookupEnv, stderr) }
	return daemon.RunLoaded("router", args, stdout, load, func(o *options) error { return o.serve(ctx) })
}

func (o *options) serve(ctx context.Context) error {
	return o.Serve(ctx, "router", func() (daemon.Service, error) {
		o.Config.Traces = o.Common.Traces
		r, err := router.New(o.Config)
		if err != nil {
			return nil, usageOf(err)
		}
		o.Live = limits(r, o.Config)
		return closing{r}, nil
	})
}

// closing is a router that is closed once it has run.
type closing struct{ *router.Router }

// Run implements daemon.Service.
func (c closing) Run(ctx context.Context) error {
	defer c.Close()
	return c.Router.Run(ctx)
}

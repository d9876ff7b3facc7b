// Command router forwards calls of clients without the SDK to the AllocSvr that own
// their UIDs, over gRPC and HTTP.
package main

import (
	"context"
	"io"
	"os"
	"runtime/debug"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/router"
)

func main() {
	daemon.Slacken()
	os.Exit(daemon.Main("router", os.Args[1:], run))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	load := func(args []string) (*options, error) { return load(args, os.LookupEnv, stderr) }
	return daemon.RunLoaded("router", args, stdout, load, func(o *options) error { return o.serve(ctx) })
}

func (o *options) serve(ctx context.Context) error {
	go daemon.FollowProcessors(ctx, o.Common.Logger)
	boundHeap(o.Config.MaxInWork)
	return o.Serve(ctx, "router", func() (daemon.Service, error) {
		o.Config.Traces = o.Common.Traces
		if o.etcd.Given() {
			if err := o.findAllocs(ctx); err != nil {
				return nil, err
			}
		}
		r, err := router.New(o.Config)
		if err != nil {
			return nil, usageOf(err)
		}
		o.Live = limits(r, o.Config)
		return closing{r}, nil
	})
}

// heapLimit is the memory up to which the runtime collects garbage only when the heap has doubled. It is
// nearly twice the memory of a router with DefaultMaxInWork keys in work.
const heapLimit = 96 << 20

// boundHeap has a burst of large calls leave less garbage, by more or less with another
// bound of the keys in work. A GOMEMLIMIT in the environment stands.
func boundHeap(maxInWork int) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(heapLimit, heapLimit*int64(maxInWork)/router.DefaultMaxInWork))
	}
}

// closing is a router that is closed once it has run.
type closing struct{ *router.Router }

// Run implements daemon.Service.
func (c closing) Run(ctx context.Context) error {
	defer c.Close()
	return c.Router.Run(ctx)
}

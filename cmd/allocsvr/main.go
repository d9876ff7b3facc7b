// Command allocsvr is AllocSvr. It owns sections and hands out their numbers from memory. With --supervise
// it is the parent of such a process.
package main

import (
	"context"
	"io"
	"os"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

func main() {
	daemon.Slacken()
	os.Exit(daemon.Main("allocsvr", os.Args[1:], run))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	load := func(args []string) (*options, error) { return load(args, os.LookupEnv, stderr) }
	return daemon.RunLoaded("allocsvr", args, stdout, load, func(o *options) error {
		if o.supervise {
			return supervise(ctx, o, args)
		}
		return o.serve(ctx)
	})
}

func (o *options) serve(ctx context.Context) error {
	go daemon.FollowProcessors(ctx, o.Common.Logger)
	return o.Serve(ctx, "allocsvr", func() (daemon.Service, error) {
		o.Config.Traces, o.Config.Refused = o.Common.Traces, rpc.NewRefused(o.Common.Logger)
		server, err := allocsvr.New(o.Config)
		if err != nil {
			return nil, usageOf(err)
		}
		o.Live, o.Hangup = limits(server, o.Config), server.ReopenAudit
		return o.openRESP(server)
	})
}

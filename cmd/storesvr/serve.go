package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/config"
	"github.com/seqsvr/seqsvr/internal/daemon"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
)

// serveOptions are the flags of `storesvr serve`.
type serveOptions struct {
	storesvr.Config
	daemon.Common
}

func serveFlags() (*pflag.FlagSet, *serveOptions) {
	o := &serveOptions{Config: storesvr.DefaultConfig()}
	fs := pflag.NewFlagSet("storesvr serve", pflag.ContinueOnError)
	fs.StringVar(&o.DataDir, "data-dir", "", "`directory` with the database that init made")
	fs.StringVar(&o.Listen, "listen", o.Listen, "gRPC `address`, host:port")
	fs.StringVar(&o.Advertise, "advertise", "", "gRPC `address` that others are told; empty: the one listened on")
	fs.StringVar(&o.ClusterID, "cluster", "", "`id` of the cluster that the database must be of; empty: any")
	fs.StringVar(&o.GossipListen, "gossip-listen", "", "membership `address`, host:port; empty: no membership")
	fs.StringSliceVar(&o.GossipJoin, "gossip-join", nil, "membership `addresses` of other nodes")
	fs.StringVar(&o.GossipProfile, "gossip-profile", "fast", "timings of the membership: fast, lan or wan")
	fs.DurationVar(&o.MaxLease, "max-lease", o.MaxLease, "longest lease that is granted")
	fs.Uint64Var(&o.NearFull, "near-full", o.NearFull, "`bytes` free on the disk below which writes are refused; 0: never")
	o.Common.Flags(fs, "127.0.0.1:7509")
	return fs, o
}

func runServe(ctx context.Context, args []string, stderr io.Writer) error {
	fs, o := serveFlags()
	fs.SetOutput(stderr)
	if err := config.Load(fs, args, os.LookupEnv); err != nil {
		return daemon.Usage(err)
	}
	if fs.NArg() > 0 {
		return daemon.Usage(fmt.Errorf("serve: %q is too much: expected flags only", fs.Arg(0)))
	}
	if err := o.Open(stderr); err != nil {
		return err
	}
	o.Config.Logger = o.Common.Logger
	return o.Serve(ctx, "storesvr", func() (daemon.Service, error) {
		store, err := storesvr.New(o.Config)
		if err != nil {
			return nil, usageOf(err)
		}
		return store, nil
	})
}

// usageOf marks what only another command line can cure.
func usageOf(err error) error {
	if errors.Is(err, storesvr.ErrConfig) || errors.Is(err, seq.ErrBadMapping) {
		return daemon.Usage(err)
	}
	return err
}

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/quorum"
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
	fs.StringVar(&o.DataDir, "data-dir", "", "`directory` with the database that init made; required")
	fs.StringVar(&o.Listen, "listen", o.Listen, "gRPC `address`, host:port")
	fs.StringVar(&o.Advertise, "advertise", "", "gRPC `address` that others are told; empty: the one listened on")
	fs.StringVar(&o.ClusterID, "cluster", "", "`id` of the cluster that the database must be of; empty: any")
	fs.StringVar(&o.Zone, "zone", "", "`name` of the zone, such as a rack or a building, that fails as a whole; empty: the one that init was told, if any")
	fs.StringVar(&o.GossipListen, "gossip-listen", "", "membership `address`, host:port; empty: no membership")
	fs.StringSliceVar(&o.GossipJoin, "gossip-join", nil, "membership `addresses` of other nodes; empty: none, others join this one")
	fs.StringVar(&o.GossipProfile, "gossip-profile", "fast", "timings of the membership: fast, lan or wan")
	fs.DurationVar(&o.MaxLease, "max-lease", o.MaxLease, "longest lease that is granted")
	fs.Uint64Var(&o.NearFull, "near-full", o.NearFull, "`bytes` free on the disk below which writes are refused; 0: never")
	o.Common.Flags(fs, "127.0.0.1:7509")
	return fs, o
}

// loadServe reads the flags and what may stand in for them. All its errors are of usage.
func loadServe(args []string, env func(string) (string, bool), stderr io.Writer) (*serveOptions, error) {
	_, o := serveFlags()
	if err := o.Load(args, env, stderr); err != nil {
		return nil, err
	}
	if err := o.OpenAuth(auth.Identity{Cluster: o.ClusterID, Role: auth.Store}); err != nil {
		return nil, err
	}
	o.Config.Logger, o.Config.TLS, o.Config.Guard = o.Common.Logger, o.Common.TLS, o.Common.Guard
	o.Config.GossipKeys = o.Common.GossipKeys
	return o, daemon.Usage(o.Validate())
}

// runServe is `storesvr serve`, and with config before the arguments `storesvr config`.
func runServe(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	load := func(args []string) (*serveOptions, error) { return loadServe(args, os.LookupEnv, stderr) }
	return daemon.RunLoaded("storesvr", args, stdout, load, func(o *serveOptions) error { return o.serve(ctx) })
}

func (o *serveOptions) serve(ctx context.Context) error {
	return o.Serve(ctx, "storesvr", func() (daemon.Service, error) {
		o.Config.Traces, o.Config.Memory = o.Common.Traces, o.Common.Memory.Bytes
		store, err := storesvr.New(o.Config)
		if err != nil {
			return nil, usageOf(err)
		}
		o.Live = limits(store, o.Config)
		return store, nil
	})
}

// limits returns the settings that a store takes while it serves.
func limits(store *storesvr.Store, now storesvr.Config) map[string]func(string) error {
	set := func(nearFull uint64, maxLease time.Duration) error {
		err := store.SetLimits(nearFull, maxLease)
		if err == nil {
			now.NearFull, now.MaxLease = nearFull, maxLease
		}
		return err
	}
	return map[string]func(string) error{
		"near-full": func(text string) error {
			bytes, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return err
			}
			return set(bytes, now.MaxLease)
		},
		"max-lease": func(text string) error {
			longest, err := time.ParseDuration(text)
			if err != nil {
				return err
			}
			return set(now.NearFull, longest)
		},
	}
}

// usageOf marks what only another command line can cure.
func usageOf(err error) error {
	if errors.Is(err, storesvr.ErrConfig) || errors.Is(err, seq.ErrBadMapping) || errors.Is(err, quorum.ErrZones) {
		return daemon.Usage(err)
	}
	return err
}

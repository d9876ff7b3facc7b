package main

import (
	"errors"
	"io"

	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/seq"
)

// options are the flags of router.
type options struct {
	router.Config
	daemon.Common
	etcd etcdclient.Flags
}

func flags() (*pflag.FlagSet, *options) {
	o := &options{}
	fs := pflag.NewFlagSet("router", pflag.ContinueOnError)
	fs.StringVar(&o.Name, "name", "", "name of this node in the membership; empty: one is made up")
	fs.StringVar(&o.Zone, "zone", "", "`name` of the zone, such as a rack or a building, that fails as a whole: callers there ask this router first; empty: none is known")
	fs.StringVar(&o.Listen, "listen", "127.0.0.1:7400", "gRPC `address`, host:port")
	fs.StringVar(&o.HTTPListen, "http", "127.0.0.1:7480", "HTTP `address`, host:port; empty: no HTTP")
	fs.StringSliceVar(&o.HTTPHosts, "http-hosts", nil, "`names` that the HTTP front may be asked by, beside IP addresses, localhost and the host of --http; empty: no others")
	fs.BoolVar(&o.Leaf, "leaf", false, "serve the paths of Leaf that take numbers by GET: /api/segment/get/ and /api/snowflake/get/")
	fs.StringVar(&o.RESPListen, "resp", "", "`address` for clients of Redis, host:port; empty: none")
	fs.StringVar(&o.ConsoleListen, "console", "", "`address` of a page to look at the cluster with, host:port; empty: none")
	fs.StringSliceVar(&o.ConsoleHosts, "console-hosts", nil, "`names` that the console may be asked by, beside IP addresses, localhost and the host of --console; empty: no others")
	fs.StringVar(&o.Advertise, "advertise", "", "gRPC `address` that others are told; empty: the one listened on")
	fs.StringSliceVar(&o.Allocs, "allocs", nil, "gRPC `addresses` of some AllocSvr, required unless --etcd is given; the others are learned from them")
	o.etcd.AddTo(fs)
	fs.Lookup("etcd").Usage = "client `addresses` of the etcd that keeps the registers, host:port, to find AllocSvr there at the start in place of --allocs; empty: none"
	fs.StringVar(&o.ClusterID, "cluster", "", "`id` of the cluster that they must be of; empty: any")
	fs.DurationVar(&o.Timeout, "timeout", client.DefaultTimeout, "how long a call is tried whose caller sets no deadline")
	fs.DurationVar(&o.AttemptTimeout, "attempt-timeout", client.DefaultAttemptTimeout, "after how long a silent AllocSvr is given up and another asked")
	fs.DurationVar(&o.SuspectAfter, "suspect-after", 0, "silence of an AllocSvr after which its standbys are asked too, for keys of strict and exact spaces, where AllocSvr have --suspect-after; 0: they are not")
	fs.StringSliceVar(&o.IDsFallback, "ids-fallback", nil, "`namespaces` of snowflake IDs that this router makes itself while no AllocSvr answers, each with a worker id of its own; empty: none")
	fs.DurationVar(&o.IDsFallbackAfter, "ids-fallback-after", client.DefaultFallbackAfter, "how long such a call waits for an AllocSvr before")
	fs.DurationVar(&o.IDsFallbackWindow, "ids-fallback-window", client.DefaultFallbackWindow, "for how long that goes on at most, and half of it at least; 1s to 50m")
	fs.DurationVar(&o.UnreadyAfter, "unready-after", router.DefaultUnreadyAfter, "for how long no AllocSvr must have answered before this router says that it is not ready, at least 1s")
	fs.IntVar(&o.MaxInWork, "max-in-work", router.DefaultMaxInWork, "`keys` of calls in work, each call counting 64 more, beyond which calls are refused as overloaded; at least 10,064; changes at SIGHUP")
	fs.IntVar(&o.HTTPMaxBody, "http-max-body", router.DefaultHTTPMaxBody, "`bytes` of the largest body of an HTTP request; changes at SIGHUP")
	fs.IntVar(&o.RESPMaxConns, "resp-max-conns", line.DefaultMaxConns, "how many `connections` clients of Redis may have at a time; changes at SIGHUP")
	fs.IntVar(&o.RESPMaxPipeline, "resp-max-pipeline", line.DefaultMaxPipeline, "how many `commands` of such a connection are answered together; changes at SIGHUP")
	fs.StringVar(&o.GossipListen, "gossip-listen", "", "membership `address`, host:port; empty: no membership")
	fs.StringSliceVar(&o.GossipJoin, "gossip-join", nil, "membership `addresses` of other nodes; empty: none, others join this one")
	fs.StringVar(&o.GossipProfile, "gossip-profile", "fast", "timings of the membership: fast, lan or wan")
	o.Common.Flags(fs, "127.0.0.1:7409")
	return fs, o
}

// load reads the flags and what may stand in for them. All its errors are of usage.
func load(args []string, env func(string) (string, bool), stderr io.Writer) (*options, error) {
	_, o := flags()
	if err := o.Load(args, env, stderr); err != nil {
		return nil, err
	}
	if err := o.OpenAuth(auth.Identity{Cluster: o.ClusterID, Role: auth.Router}); err != nil {
		return nil, err
	}
	o.Config.Logger, o.Config.TLS, o.Config.Guard = o.Common.Logger, o.Common.TLS, o.Common.Guard
	o.Config.GossipKeys = o.Common.GossipKeys
	return o, daemon.Usage(o.checkSources())
}

// limits returns the settings that a router takes while it serves.
func limits(r *router.Router, now router.Config) map[string]func(string) error {
	return daemon.LiveInts(now, r.SetLimits, map[string]func(*router.Config) *int{
		"max-in-work":       func(c *router.Config) *int { return &c.MaxInWork },
		"http-max-body":     func(c *router.Config) *int { return &c.HTTPMaxBody },
		"resp-max-conns":    func(c *router.Config) *int { return &c.RESPMaxConns },
		"resp-max-pipeline": func(c *router.Config) *int { return &c.RESPMaxPipeline },
	})
}

// usageOf marks what only another command line can cure.
func usageOf(err error) error {
	if errors.Is(err, seq.ErrBadArgument) {
		return daemon.Usage(err)
	}
	return err
}

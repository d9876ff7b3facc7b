package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/allocsvr/api"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/audit"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
)

// options are the flags of allocsvr.
type options struct {
	allocsvr.Config
	daemon.Common
	supervise bool
	pidFile   string
	resp      router.Config // of the front for clients of Redis

	fs   *pflag.FlagSet
	etcd etcdclient.Flags
}

func flags() (*pflag.FlagSet, *options) {
	o := &options{Config: allocsvr.DefaultConfig()}
	fs := pflag.NewFlagSet("allocsvr", pflag.ContinueOnError)
	o.fs = fs
	fs.StringVar(&o.Name, "name", "", "`name` of this node, unique in the cluster; required")
	fs.StringVar(&o.Listen, "listen", o.Listen, "gRPC `address`, host:port")
	fs.StringVar(&o.Advertise, "advertise", "", "gRPC `address` that others are told; empty: the one listened on")
	fs.StringSliceVar(&o.Stores, "stores", nil, "gRPC `addresses` of all StoreSvr; required unless --etcd is given")
	o.etcd.AddTo(fs)
	fs.StringVar(&o.ClusterID, "cluster", "", "`id` of the cluster that the stores must be of; empty: any")
	fs.StringVar(&o.DataDir, "data-dir", "", "`directory` for counters that nobody could take over; empty: none are kept")
	fs.Uint32Var(&o.Weight, "weight", o.Weight, "share of the sections, 1 to 10,000")
	fs.StringVar(&o.Zone, "zone", "", "`name` of the zone, such as a rack or a building, that fails as a whole: standbys are in another; empty: none is known")
	fs.Uint64Var(&o.DatacenterID, "datacenter-id", o.DatacenterID, "`id` of the datacenter in snowflake IDs, for layouts that have that field; default 0")
	fs.StringVar(&o.Datacenter, "datacenter", o.Datacenter, "`name` of that datacenter, bound to its id at first use; empty only while nobody has named it")
	fs.StringSliceVar(&o.Regions, "regions", nil, "gRPC `addresses` of routers or AllocSvr of other regions' clusters, which must not have this node's datacenter id as well; empty: nobody is looked at")
	fs.StringVar(&o.RegionsCA, "regions-ca", "", "PEM `file` of the CAs of their certificates; empty: plaintext")
	fs.StringVar(&o.RegionsTokenFile, "regions-token-file", "", "`file` with the token of a reader there, mode 0600, over TLS only; empty: none")
	fs.Int64Var(&o.WorkerID, "worker-id", o.WorkerID, "the only snowflake worker `id` to use; -1: any free one")
	fs.StringArrayVar(&o.Namespaces, "namespaces", nil, "snowflake `namespace` to be recorded if it is not yet, as \"name=orders alias=7 layout=leaf\"; may be repeated, in the environment one a line; empty: none")
	fs.DurationVar(&o.WorkerWindow, "worker-window", o.WorkerWindow, "how far ahead a worker id's high-water mark is confirmed, and so how long IDs go on without a quorum; 100ms to 10m, 0: 3s")
	fs.StringVar(&o.IDAudit.Path, "id-audit", "", "`file` for a JSON line of each range of snowflake IDs that is handed out; empty: none")
	fs.Int64Var(&o.IDAudit.Bytes, "id-audit-bytes", audit.DefaultBytes, "`bytes` after which that file is followed by another")
	fs.IntVar(&o.IDAudit.Files, "id-audit-files", audit.DefaultFiles, "how many older `files` are kept")
	fs.DurationVar(&o.Lease, "lease", o.Lease, "how long the stores keep others away, 200ms to 10s; 3s if not given with --etcd")
	fs.DurationVar(&o.SuspectAfter, "suspect-after", o.SuspectAfter, "silence of a node after which its standbys take over its sections of strict and exact spaces, 40ms to the lease; 0: they wait for its lease")
	fs.IntVar(&o.ExpectAllocs, "expect-allocs", o.ExpectAllocs, "how many AllocSvr a new cluster waits for before it places sections")
	fs.IntVar(&o.MaxInWork, "max-in-work", o.MaxInWork, "`keys` of calls in work, each call counting 64 more, beyond which calls are refused as overloaded; at least 10,064; changes at SIGHUP")
	fs.IntVar(&o.MaxStreamWaits, "max-stream-waits", o.MaxStreamWaits, "`calls` of one stream that may wait, beyond which they are refused likewise; changes at SIGHUP")
	fs.Uint64Var(&o.UIDMemory, "uid-memory", o.UIDMemory, "`bytes` that the counters of UIDs may take; from 60 % on, those not taken from for long are dropped, which skips numbers, and beyond all of it UIDs without a counter are refused; at least 1048576; 0: any number; UIDs and ids of exact spaces may take half as much beside it; if not given, 30 % of --memory, and at most 1 GiB of a machine without a limit; changes at SIGHUP")
	fs.StringVar(&o.resp.RESPListen, "resp", "", "`address` for clients of Redis, host:port: what they ask of sections of others is forwarded; needs --auth off; empty: none")
	fs.StringVar(&o.GossipListen, "gossip-listen", "", "membership `address`, host:port; empty: no membership")
	fs.StringSliceVar(&o.GossipJoin, "gossip-join", nil, "membership `addresses` of other nodes; empty: none, others join this one")
	fs.StringVar(&o.GossipProfile, "gossip-profile", o.GossipProfile, "timings of the membership: fast, lan or wan")
	fs.BoolVar(&o.supervise, "supervise", false, "run below a parent that ends the lease at once when this process dies, and starts it again")
	fs.StringVar(&o.pidFile, "pid-file", "", "with --supervise, a `file` for the process id of the child; empty: none")
	o.Common.Flags(fs, "127.0.0.1:7419")
	return fs, o
}

// load reads the flags and what may stand in for them. All its errors are of usage.
func load(args []string, env func(string) (string, bool), stderr io.Writer) (*options, error) {
	_, o := flags()
	if err := o.Load(args, env, stderr); err != nil {
		return nil, err
	}
	if err := o.shareMemory(); err != nil {
		return nil, daemon.Usage(err)
	}
	o.Namespaces = lines(o.Namespaces)
	if err := o.OpenAuth(auth.Identity{Cluster: o.ClusterID, Role: auth.Alloc, Name: o.Name}); err != nil {
		return nil, err
	}
	o.Config.Logger, o.Config.TLS, o.Config.Guard = o.Common.Logger, o.Common.TLS, o.Common.Guard
	o.Config.GossipKeys = o.Common.GossipKeys
	if secret, given := lookup(env, secretEnv); given && !o.supervise {
		if err := o.Secret.UnmarshalText([]byte(secret)); err != nil {
			return nil, daemon.Usage(fmt.Errorf("environment %s: %w", secretEnv, err))
		}
		if of := o.Secret.Node; of != "" && of != o.Name {
			return nil, daemon.Usage(fmt.Errorf("--name %s: the parent that watches over this process has started as %q: start it anew", o.Name, of))
		}
	}
	if err := o.openEtcd(); err != nil {
		return nil, daemon.Usage(err)
	}
	if err := o.checkRESP(); err != nil {
		return nil, err
	}
	return o, daemon.Usage(o.Validate())
}

// shareMemory gives uid-memory its share of the memory limit, if it is not given. Error: seq.ErrBadArgument
// for a uid-memory that is above the limit.
func (o *options) shareMemory() error {
	flag := o.fs.Lookup("uid-memory")
	share := o.Memory.Bytes / 100 * api.UIDMemoryShare
	switch {
	case o.Memory.Bytes == 0:
		return nil
	case !flag.Changed && (o.Memory.Given || share < o.UIDMemory):
		return flag.Value.Set(strconv.FormatUint(share, 10))
	case flag.Changed && o.UIDMemory > o.Memory.Bytes:
		return fmt.Errorf("%w: uid-memory %d, expected at most the %d bytes that the process may take (%s)", seq.ErrBadArgument, o.UIDMemory, o.Memory.Bytes, o.Memory.From)
	}
	return nil
}

// secretEnv names the variable in which the supervising parent gives its child the secret of the session.
// The parent will end that session. The secret is not an argument, because every user of the machine can
// read arguments.
const secretEnv = "SEQ_SUPERVISED_SECRET"

func lookup(env func(string) (string, bool), name string) (string, bool) {
	if env == nil {
		return "", false
	}
	return env(name)
}

// lines splits values from the environment, where one value holds many lines, and leaves out empty lines.
func lines(texts []string) []string {
	var out []string
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
	}
	return out
}

// limits returns the settings that an allocator takes while it serves.
func limits(server *allocsvr.Server, now allocsvr.Config) map[string]func(string) error {
	return daemon.Live(now, server.SetLimits, map[string]func(*allocsvr.Config, string) error{
		"max-in-work":      func(c *allocsvr.Config, text string) (err error) { c.MaxInWork, err = strconv.Atoi(text); return },
		"max-stream-waits": func(c *allocsvr.Config, text string) (err error) { c.MaxStreamWaits, err = strconv.Atoi(text); return },
		"uid-memory": func(c *allocsvr.Config, text string) (err error) {
			c.UIDMemory, err = strconv.ParseUint(text, 10, 64)
			return
		},
	})
}

// usageOf marks what only another command line can cure.
func usageOf(err error) error {
	if errors.Is(err, seq.ErrBadArgument) || errors.Is(err, seq.ErrBadLease) || errors.Is(err, seq.ErrBadLayout) {
		return daemon.Usage(err)
	}
	return err
}

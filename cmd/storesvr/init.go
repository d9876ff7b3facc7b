package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/base/config"
	"github.com/seqsvr/seqsvr/internal/base/hostport"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// initOptions are the flags of `storesvr init`.
type initOptions struct {
	storesvr.InitConfig
	first     seq.Space // the default space
	spaces    []string  // further ones, as seq.ParseSpace reads them
	ifMissing bool

	files   rpc.TLSFiles // for --join
	learner bool         // to be filled by a cluster that runs
	rejoin  bool         // a learner if the cluster runs, else a member
	join    []string     // addresses of its stores
	zone    string
}

func initFlags() (*pflag.FlagSet, *initOptions) {
	o := &initOptions{first: seq.Space{Name: seq.DefaultSpace}}
	fs := pflag.NewFlagSet("storesvr init", pflag.ContinueOnError)
	fs.StringVar(&o.DataDir, "data-dir", "", "`directory` that the database is made in; required")
	fs.StringVar(&o.ClusterID, "cluster", "", "`id` of the cluster, the same for all its stores; required")
	fs.StringVar(&o.Name, "name", "", "`name` of this store, one of --members; required")
	fs.StringSliceVar(&o.MemberNames, "members", nil, "`names` of all stores of the cluster; required")
	fs.StringSliceVar(&o.Zones, "zones", nil, "`zones` of --members, in their order; empty: not known")
	fs.BoolVar(&o.AnyZones, "any-zones", false, "make the store even if one of three or more zones has as many stores as a write needs")
	fs.IntVar(&o.R, "r", 0, "number of stores that a read needs; 0: N-W+1")
	fs.IntVar(&o.W, "w", 0, "number of stores that a write needs, above N/2; 0: a majority")
	fs.Uint32Var(&o.first.Sections, "sections", seq.DefaultSections, "number of sections of the space "+seq.DefaultSpace)
	fs.Uint64Var(&o.first.Step, "step", seq.DefaultStep, "how many `numbers` one write moves a section's max of the space "+seq.DefaultSpace)
	fs.StringVar((*string)(&o.first.Mode), "mode", string(seq.Ordered), "mode of the space "+seq.DefaultSpace+": "+seq.ModeNames)
	fs.DurationVar(&o.first.Window, "window", 0, "how long that space keeps the ids of requests, with --mode exact; 0: "+seq.DefaultWindow.String())
	fs.DurationVar(&o.first.Tickets, "tickets", 0, "the longest life of a ticket of that space, "+seq.MinTickets.String()+" to "+seq.MaxTickets.String()+"; 0: it gives no tickets")
	fs.Uint64Var(&o.first.MaxStep, "max-step", 0, "`numbers` that the step of a busy section of that space grows to at most; 0: "+strconv.Itoa(seq.DefaultMaxStep)+" with the default step, any other never grows")
	fs.Uint64Var(&o.first.MaxJump, "max-jump", 0, "`numbers` by which a raise may move a section's max of that space without --force; 0: "+strconv.Itoa(seq.DefaultMaxJump))
	fs.StringVar((*string)(&o.first.KeyHash), "key-hash", string(seq.SecretKeys), "how string keys of that space become UIDs: hmac-sha256-64, under a secret that the cluster draws and keeps, or sha256-64, which anybody can repeat")
	fs.StringArrayVar(&o.spaces, "space", nil, "a further `space`, "+seq.SpaceForm+"; may be given again; empty: none")
	fs.BoolVar(&o.ifMissing, "if-missing", false, "succeed and touch nothing where a database is, for start scripts that run each time")
	fs.BoolVar(&o.learner, "learner", false, "make a store for a cluster that runs, to be filled by seqctl store replace or add; takes --join, --name, --zone and --data-dir")
	fs.BoolVar(&o.rejoin, "rejoin", false, "with --join, make a learner if a store there knows its fellow members already, as after the loss of this store's disk; else a store as without --join")
	fs.StringVar(&o.zone, "zone", "", "with --learner, the `zone` of this store; empty: not known")
	fs.StringVar(&o.files.CA, "tls-ca", "", "PEM `file` of the CAs of that cluster's certificates; empty: plaintext")
	fs.StringVar(&o.files.Cert, "tls-cert", "", "PEM `file` of a certificate to show there; empty: none")
	fs.StringVar(&o.files.Key, "tls-key", "", "PEM `file` of its key; required with --tls-cert")
	fs.StringSliceVar(&o.join, "join", nil, "gRPC `addresses` of stores of that cluster; required with --learner and --rejoin")
	return fs, o
}

// config returns the settings from the flags.
func (o *initOptions) config() (storesvr.InitConfig, error) {
	cfg := o.InitConfig
	if o.zone != "" && !o.learner {
		return cfg, fmt.Errorf("%w: --zone %q: expected --learner, or --zones of all members", storesvr.ErrConfig, o.zone)
	}
	if err := o.checkNames(); err != nil {
		return cfg, err
	}
	cfg.Spaces = []seq.Space{o.first}
	for _, text := range o.spaces {
		space, err := seq.ParseSpace(text)
		if err != nil {
			return cfg, fmt.Errorf("--space %q: %w", text, err)
		}
		cfg.Spaces = append(cfg.Spaces, space)
	}
	return cfg, nil
}

// checkNames refuses names that no certificate can have, because a name cannot change later. A missing name
// is reported by the code that needs it.
func (o *initOptions) checkNames() error {
	if _, err := os.Stat(filepath.Join(o.DataDir, disk.FileName)); o.ifMissing && err == nil {
		return nil // the names of before are kept
	}
	for _, name := range append(slices.Clone(o.MemberNames), o.Name) {
		id := auth.Identity{Cluster: cmp.Or(o.ClusterID, "c"), Role: auth.Store, Name: cmp.Or(name, "s")}
		if err := id.Check(); err != nil {
			return fmt.Errorf("%w: %w", storesvr.ErrConfig, err)
		}
	}
	return hostport.DialAll("--join", o.join)
}

func runInit(ctx context.Context, args []string, stderr io.Writer) error {
	fs, o := initFlags()
	fs.SetOutput(stderr)
	if err := config.CheckEnvironment(os.Environ()); err != nil {
		return daemon.Usage(err)
	}
	if err := config.Load(fs, args, os.LookupEnv); err != nil {
		return daemon.Usage(err)
	}
	if fs.NArg() > 0 {
		return daemon.Usage(fmt.Errorf("init: %q is too much: expected flags only", fs.Arg(0)))
	}
	cfg, err := o.config()
	if err != nil {
		return daemon.Usage(err)
	}
	made := "a new store of cluster " + cfg.ClusterID
	switch _, there := os.Stat(filepath.Join(o.DataDir, disk.FileName)); {
	case o.rejoin && (o.learner || len(o.join) == 0):
		err = fmt.Errorf("%w: --rejoin: expected --join, and no --learner", storesvr.ErrConfig)
	case o.rejoin && there != nil: // a database that is there needs no answer of the cluster
		if o.zone = zoneOf(cfg); cfg.Name == "" {
			err = fmt.Errorf("%w: no name", storesvr.ErrConfig)
			break
		}
		var learns bool
		if learns, err = rejoin(ctx, o); err == nil && !learns {
			err = storesvr.Init(cfg)
		}
		if learns {
			made = "a learner, which seqctl store replace or add fills and lets vote"
		}
	case !o.rejoin && (o.learner || len(o.join) > 0):
		made = "a learner, which seqctl store replace or add fills and lets vote"
		err = initLearner(ctx, o, fs)
	default:
		err = storesvr.Init(cfg)
	}
	if o.ifMissing && errors.Is(err, disk.ErrExists) {
		// Whether it is the right one is checked by serve, by its members and by --cluster.
		fmt.Fprintf(stderr, "storesvr init: %s has a database, which is left as it is\n", cfg.DataDir)
		return nil
	}
	if err != nil {
		return usageOf(err)
	}
	fmt.Fprintf(stderr, "storesvr init: %s in %s is %s\n", cfg.Name, cfg.DataDir, made)
	return nil
}

// zoneOf returns the zone of a store in the list of its members. It is empty if it is not known.
func zoneOf(cfg storesvr.InitConfig) string {
	at := slices.Index(cfg.MemberNames, cfg.Name)
	if at < 0 || at >= len(cfg.Zones) {
		return ""
	}
	return cfg.Zones[at]
}

package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/hostport"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/ops/console"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
)

// Bounds of a cluster's life.
const (
	readyPatience = 2 * time.Minute  // until everything serves
	stopPatience  = 30 * time.Second // for stopping in order
)

// Default leases, used without --lease.
//
// In one process all nodes starve together, and no node dies alone. There a short lease would only lapse on
// a busy machine and make UIDs jump to their ceilings. A long lease has one cost: after a kill -9 of dev,
// the stores keep the sections for their former owners, and the next start waits. Half of the longest lease
// that the stores grant (storesvr --max-lease) suffices on a machine that is many times overloaded, and
// keeps that wait short.
const (
	leaseHere      = 5 * time.Second
	leaseProcesses = time.Second // as the daemons have it: here one may be killed alone
)

// defaultHTTP is where the first router's HTTP front listens, where --http does not say.
const defaultHTTP = "127.0.0.1:7480"

// options are the flags of dev.
type options struct {
	localcluster.Config
	processes bool
	httpHosts []string
	readyFile string
	logLevel  string
}

// running is a cluster that was started, in this process or as others.
type running interface {
	// ready waits until everything serves.
	ready(ctx context.Context) error
	// ended tells of daemons that end without having been stopped. It is closed when
	// the cluster cannot go on.
	ended() <-chan string
	// stop stops everything in order; when ctx ends, at once.
	stop(ctx context.Context) error
	// processes returns the daemons with their addresses.
	processes() []process
}

// process is one entry of the ready file.
type process struct {
	Role localcluster.Role `json:"role"`
	Name string            `json:"name"`
	Pid  int               `json:"pid"`
	Addr string            `json:"addr"`
	Zone string            `json:"zone,omitempty"`
	Set  string            `json:"set,omitempty"`
}

// readyFile is the JSON of --ready-file.
type readyFile struct {
	GRPC      string    `json:"grpc"`
	HTTP      string    `json:"http"`
	RESP      string    `json:"resp,omitempty"`
	Console   string    `json:"console,omitempty"`
	Dev       int       `json:"dev,omitempty"` // with --processes: SIGHUP to it starts what has ended
	Processes []process `json:"processes"`
}

// Command returns the verb.
func Command() *cobra.Command {
	o := &options{Config: localcluster.DefaultConfig("")}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "run a whole cluster on this machine until Ctrl-C",
		Long: `dev runs stores, allocators and a router in this process, or with --processes as
real processes, and prints where they listen. With --etcd the registers are in an etcd that
runs already, and there are no stores: dev makes a cluster below --etcd-prefix if there is
none, as seqctl etcd init does. A directory used before goes on above every number it handed
out. Ctrl-C stops the cluster in order; a second one at once.
With --processes, SIGHUP starts daemons again that have ended. With --secure nobody gets
in without a certificate or a token; it prints those of a caller and of an operator.`,
		Args: ctl.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Etcd.Given() && cmd.Flags().Changed("stores") {
				return daemon.Usage(errors.New("dev: --stores with --etcd, expected one of them: with etcd there are no stores"))
			}
			stdout, stderr, done := daemon.Outlive(cmd.OutOrStdout(), cmd.ErrOrStderr())
			defer done()
			if err := o.run(cmd.Context(), stdout, stderr); err != nil {
				return fmt.Errorf("dev: %w", err)
			}
			return nil
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Dir, "data-dir", filepath.Join("data", "dev"), "`directory` of the cluster; made if missing")
	fs.StringVar(&o.ClusterID, "cluster", "", "`id` of the cluster of a new directory, with --etcd also of one that is there; empty: one is drawn")
	fs.StringVar(&o.Listen, "listen", ctl.DefaultAddr, "gRPC `address` of the router, host:port")
	fs.StringVar(&o.HTTP, "http", defaultHTTP, "HTTP `address` of the router, host:port")
	fs.StringSliceVar(&o.httpHosts, "http-hosts", nil, "`names` that this may be asked by, beside IP addresses, localhost and the host of --http; empty: no others")
	fs.StringVar(&o.RESP, "resp", "", "`address` of the router for clients of Redis, host:port; empty: none, or with --secure one that is free")
	fs.StringVar(&o.Console, "console", "", "`address` of a page to look at the cluster with, host:port, or none; empty: "+console.DefaultAddr+", or beside another --http a free port")
	fs.IntVar(&o.Stores, "stores", o.Stores, "number of StoreSvr, fixed at the first start in a directory")
	o.Etcd.AddTo(fs)
	fs.IntVar(&o.Allocs, "allocs", o.Allocs, "number of AllocSvr")
	fs.IntVar(&o.Routers, "routers", o.Routers, "number of routers; the first one listens at --listen and --http")
	fs.StringSliceVar(&o.Zones, "zones", nil, "`zones` that the nodes of each kind are in, in turn, such as a,b,c; empty: none")
	fs.IntVar(&o.Sets, "sets", 1, "number of `Sets`, each with its own stores and allocators, that divide the sections behind the routers; never fewer than before in a directory")
	fs.Uint32Var(&o.Sections, "sections", seq.DefaultSections, "how many `sections`, fixed at the first start in a directory")
	fs.Uint64Var(&o.Step, "step", seq.DefaultStep, "`numbers` that one write moves a section's max, fixed likewise")
	fs.StringArrayVar(&o.Spaces, "space", nil, "a further `space`, fixed likewise: "+seq.SpaceForm+"; may be given again; empty: none")
	fs.DurationVar(&o.Lease, "lease", 0, fmt.Sprintf("how long the stores keep others from an AllocSvr's sections; 0: %v, or with --processes %v, on etcd %v", leaseHere, leaseProcesses, etcdclient.DefaultLease))
	fs.BoolVar(&o.Secure, "secure", false, "TLS, roles and grants, and encrypted gossip, by a CA and a policy in the directory; prints what to show")
	fs.BoolVar(&o.processes, "processes", false, "run every daemon as a process of its own, from the binaries beside seqctl")
	fs.StringVar(&o.Bin, "bin", "", "with --processes, the `folder` of the binaries; empty: that of seqctl")
	fs.BoolVar(&o.Supervise, "supervise", false, "with --processes, run each AllocSvr below a parent that ends its lease when it dies")
	fs.StringVar(&o.readyFile, "ready-file", "", "write addresses and process ids to this `file` as JSON once everything serves; empty: nowhere")
	fs.StringVar(&o.logLevel, "log-level", "info", "of the daemons, debug, info, warn or error; the logs are in the directory")
	return cmd
}

// check names the first flag that cannot work, as daemon.ErrUsage, and fills the lease in.
func (o *options) check() error {
	switch {
	case o.Lease == 0 && o.processes && o.Etcd.Given():
		o.Lease = etcdclient.DefaultLease
	case o.Lease == 0 && o.processes:
		o.Lease = leaseProcesses
	case o.Lease == 0:
		o.Lease = leaseHere
	}
	switch {
	case o.Console == "none":
		o.Console = ""
	case o.Console == "" && o.HTTP == defaultHTTP:
		o.Console = console.DefaultAddr
	case o.Console == "":
		o.Console = "127.0.0.1:0"
	}
	if err := o.Validate(); err != nil {
		return daemon.Usage(err)
	}
	for flag, addr := range map[string]string{"listen": o.Listen, "http": o.HTTP, "resp": o.RESP, "console": o.Console} {
		if (flag == "resp" || flag == "console") && addr == "" {
			continue
		}
		if host, _, _ := net.SplitHostPort(addr); host == "" || hostport.Listen(addr) != nil {
			return daemon.Usage(fmt.Errorf("--%s %q: expected host:port", flag, addr))
		}
	}
	if _, err := seq.NewMapping(seq.Space{Name: seq.DefaultSpace, Sections: o.Sections, Step: o.Step}); err != nil || o.Sections == 0 || o.Step == 0 {
		return daemon.Usage(fmt.Errorf("--sections %d --step %d: expected 1 to %d and 1 to %d", o.Sections, o.Step, seq.MaxNewSections, uint64(seq.MaxStep)))
	}
	spaces, err := o.AllSpaces()
	if err != nil {
		return daemon.Usage(err)
	}
	mapping, err := seq.NewMapping(spaces...)
	if err != nil {
		return daemon.Usage(err)
	}
	if o.Etcd.Given() && mapping.HasExact() {
		return daemon.Usage(fmt.Errorf("--space with mode=exact and --etcd: %w: leave --etcd out, or take another mode", etcdstore.ErrNoExact))
	}
	if o.Lease < allocsvr.MinLease || o.Lease > allocsvr.MaxLease {
		return daemon.Usage(fmt.Errorf("--lease %v: expected %v to %v", o.Lease, allocsvr.MinLease, allocsvr.MaxLease))
	}
	if o.Secure && o.RESP == "" {
		o.RESP = "127.0.0.1:0"
	}
	if o.Sets < 1 || o.Sets > localcluster.MaxSets {
		return daemon.Usage(fmt.Errorf("--sets %d: expected 1 to %d", o.Sets, localcluster.MaxSets))
	}
	if !o.processes && (o.Supervise || o.Bin != "") {
		return daemon.Usage(errors.New("--supervise and --bin need --processes"))
	}
	_, _, err = daemon.NewLogger(io.Discard, o.logLevel, "text")
	return err
}

func (o *options) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.readyFile != "" {
		if err := os.Remove(o.readyFile); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the old ready file: %w", err)
		}
	}
	launch, hangups := startHere, make(chan os.Signal, 1)
	if o.processes {
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
		launch = startProcesses
	}
	began := time.Now()
	c, layout, err := launch(o)
	if err != nil {
		if errors.Is(err, localcluster.ErrConfig) {
			err = daemon.Usage(err)
		}
		return err
	}
	defer layout.Close()
	if err := o.serve(ctx, c, layout, began, hangups, stdout, stderr); err != nil {
		return errors.Join(err, stopNow(c))
	}
	last := "then stores"
	if o.Etcd.Given() {
		last = "and leaving etcd as it is"
	}
	fmt.Fprintln(stderr, "stopping routers, then allocators,", last)
	stop, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	return c.stop(stop)
}

// serve waits until the cluster is ready, says so, and stays until ctx ends or the
// cluster cannot go on. Nil when ctx ended.
func (o *options) serve(ctx context.Context, c running, layout *localcluster.Layout, began time.Time, hangups <-chan os.Signal, stdout, stderr io.Writer) error {
	wait, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	err := c.ready(wait)
	if err == nil {
		err = layout.JoinSets(wait)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil // told to stop before it was ready
		}
		return err
	}
	if o.readyFile != "" {
		if err := o.tell(c, layout); err != nil {
			return err
		}
		defer os.Remove(o.readyFile)
	}
	o.greet(stdout, layout, time.Since(began))
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangups:
			if err := o.revive(c, layout); err != nil {
				fmt.Fprintln(stderr, "start what has ended:", err)
			}
		case text, more := <-c.ended():
			if !more {
				return errNothingLeft
			}
			fmt.Fprintln(stderr, text)
		}
	}
}

// tell writes the ready file.
func (o *options) tell(c running, layout *localcluster.Layout) error {
	router := layout.Role(localcluster.RoleRouter)[0]
	file := readyFile{GRPC: router.Addr, HTTP: router.HTTP, RESP: router.RESP, Console: router.Console, Processes: c.processes()}
	if o.processes {
		file.Dev = os.Getpid()
	}
	return localcluster.WriteJSON(o.readyFile, file)
}

// revive starts what has ended, and writes the new process ids.
func (o *options) revive(c running, layout *localcluster.Layout) error {
	if r, ok := c.(interface{ revive() error }); ok {
		if err := r.revive(); err != nil {
			return err
		}
	}
	if o.readyFile == "" {
		return nil
	}
	return o.tell(c, layout)
}

// errNothingLeft: daemons ended by themselves, and what is left cannot serve.
var errNothingLeft = errors.New("the cluster has ended by itself; its logs say why")

// stopNow stops the remaining daemons at once.
func stopNow(c running) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

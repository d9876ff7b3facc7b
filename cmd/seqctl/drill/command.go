package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/hostport"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
)

// options are the flags.
type options struct {
	lab.Config
	lab.DrillConfig
	addr, readyFile string
	engine          string        // of the drill's own cluster
	suspectAfter    time.Duration // likewise, of its AllocSvr and routers
	list, modes     bool
	html, output    string
	web             string // address of the console; empty if there is none
	inside          string // prefix of the namespaces in whose hub this process runs
}

// Command returns the verb.
func Command() *cobra.Command {
	o := &options{Config: lab.Config{Config: localcluster.DefaultConfig(""), Temp: "seqctl-drill-", Patience: patience}}
	cmd := &cobra.Command{
		Use:   "drill NAME",
		Short: "break a part of a cluster under load, and tell what callers saw of it",
		Long: `drill keeps callers at work, breaks what the drill's name says, and prints a timeline
and a verdict: requests, errors seen by callers, longest pause of any UID, duplicates,
regressions and gaps. In a space of mode=exact callers give ids, repeat requests, and look
every id up at the end: no hole (X1), one answer to a request (X2). Without --addr and --ready-file it starts a cluster of real
processes of its own in a temporary directory, with --engine etcd on members of etcd in
place of StoreSvr; with them it uses one that "seqctl dev --processes --ready-file F" runs,
and brings back what it broke. With --etcd that one has its registers in an etcd of others,
which is left alone.

Exit 1 when there are duplicates, regressions, holes, second answers or misled readers, or the cluster did not recover.`,
		Example: "  seqctl drill --list\n  seqctl drill kill-alloc --lease 600ms --html kill.html\n" +
			"  seqctl drill kill-all --space orders --times 20\n" +
			"  seqctl drill kill-alloc --space inbox:mode=ordered,tickets=3s\n" +
			"  seqctl drill kill-alloc --modes --rate 200 --suspect-after 40ms --html modes.html\n" +
			"  seqctl drill pause-leader --engine etcd\n" +
			"  seqctl drill drain-alloc --addr 127.0.0.1:7400 -o json",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.list {
				return nil
			}
			return ctl.ExactArgs("NAME")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.engine == engineEtcd && !cmd.Flags().Changed("lease") {
				o.Lease = etcdclient.DefaultLease
			}
			return o.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addTo(cmd)
	var names []string
	for _, sc := range lab.Drills() {
		names = append(names, sc.Name)
	}
	cmd.ValidArgsFunction = ctl.OneOf(names...)
	for flag, complete := range map[string]cobra.CompletionFunc{
		"node":   o.completeNodes,
		"engine": cobra.FixedCompletions([]string{engineStore, engineEtcd}, cobra.ShellCompDirectiveNoFileComp),
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, complete) // it is there
	}
	return cmd
}

func (o *options) addTo(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&o.list, "list", false, "tell what each drill does, and end")
	fs.StringVar(&o.addr, "addr", "", "gRPC `address` of a router or AllocSvr of the cluster to drill; empty: one of its own")
	fs.StringVar(&o.readyFile, "ready-file", "", "`file` that seqctl dev --processes wrote, with the process ids; empty: no process can be broken")
	fs.StringVar(&o.Node, "node", "", "the `node` to break; empty: the drill chooses")
	fs.StringVar(&o.Set, "set", "", "the `Set` to break, or to move sections to; empty: the last one")
	fs.DurationVar(&o.Pause, "pause", 0, "how long to stop a process or to cut a node off; 0: as the drill says")
	fs.StringVar(&o.engine, "engine", engineStore, "what keeps the registers of the drill's own cluster: store, or etcd from PATH")
	fs.IntVar(&o.Stores, "stores", o.Stores, "number of StoreSvr, or members of etcd, of the drill's own cluster")
	o.Etcd.AddTo(fs)
	fs.IntVar(&o.Allocs, "allocs", o.Allocs, "number of AllocSvr of the drill's own cluster")
	fs.IntVar(&o.Routers, "routers", 2, "number of routers of the drill's own cluster")
	fs.IntVar(&o.Config.Sets, "sets", 0, "number of Sets of the drill's own cluster, each with so many StoreSvr and AllocSvr; 0: as many as the drill needs")
	fs.StringSliceVar(&o.Zones, "zones", nil, "`zones` that the nodes of the drill's own cluster are in, in turn; empty: a,b,c for a drill of zones, none for others")
	fs.DurationVar(&o.Lease, "lease", time.Second, "lease of the drill's own cluster; with --engine etcd "+etcdclient.DefaultLease.String()+" if none is given")
	fs.BoolVar(&o.Supervise, "supervise", false, "run each AllocSvr of the own cluster below a parent that ends its lease when it dies")
	fs.StringVar(&o.Load.Space, "space", "", "the calls' `space`, as name, name:mode=strict, name:mode=ordered,tickets=2s; in the drill's own cluster of mode=exact unless it says so; empty: the default one")
	fs.BoolVar(&o.modes, "modes", false, "run the drill in an ordinary, a strict and an exact space, each in a cluster of its own, and show them side by side")
	fs.DurationVar(&o.suspectAfter, "suspect-after", 0, "in the drill's own cluster, --suspect-after of its AllocSvr and routers, and SuspectAfter of callers without a router; 0: they wait for leases")
	fs.IntVar(&o.Times, "times", 1, "how many `times` to break it, in one load")
	fs.Uint32Var(&o.Sections, "sections", 0, "number of sections of the drill's own cluster; 0: the default, or 256 for a drill of Sets")
	fs.StringVar(&o.Bin, "bin", "", "`folder` of the daemons' binaries; empty: beside seqctl")
	fs.BoolVar(&o.Keep, "keep", false, "leave the directory of the own cluster, with its logs, and say where it is")
	fs.IntVar(&o.Load.Callers, "callers", 512, "how many calls are under way at once, at most")
	fs.IntVar(&o.Load.UIDs, "uids", 256, "number of UIDs that are called again and again, in turn: all of them if the load, so many calls a second as --rate, lasts for that")
	fs.IntVar(&o.Load.New, "new", 20, "`percent` of the calls that are for a UID never called before")
	fs.IntVar(&o.Load.Rate, "rate", 1000, "calls a second that begin, whatever becomes of those before")
	fs.DurationVar(&o.Load.Timeout, "timeout", 20*time.Second, "of one call, retries of the SDK included")
	fs.DurationVar(&o.Warm, "warm", time.Second, "load before the fault")
	fs.DurationVar(&o.Settle, "settle", time.Second, "load after everything serves again")
	fs.StringVar(&o.html, "html", "", "write a page with the answers over time as a picture to this `file`; empty: none")
	fs.StringVar(&o.web, "web", "", "show the drill as it runs at this `address`, host:port, and stay until Ctrl-C; empty: no page")
	fs.StringVarP(&o.output, "output", "o", string(ui.FormatTable), "table, json or yaml")
	fs.StringVar(&o.inside, "inside", "", "")
	_ = fs.MarkHidden("inside") // it exists
}

// check looks at everything that needs no cluster.
func (o *options) check(sc lab.Scenario) error {
	l := o.Load
	switch {
	case l.Callers < 1 || l.Callers > 65_536:
		return fmt.Errorf("--callers %d: expected 1 to 65536", l.Callers)
	case l.UIDs < 1 || l.UIDs > 1_000_000:
		return fmt.Errorf("--uids %d: expected 1 to 1000000", l.UIDs)
	case l.New < 0 || l.New > 100:
		return fmt.Errorf("--new %d: expected 0 to 100 percent", l.New)
	case l.Rate < 1 || l.Rate > 1_000_000:
		return fmt.Errorf("--rate %d: expected 1 to 1000000", l.Rate)
	case o.Times < 1 || o.Times > 1000:
		return fmt.Errorf("--times %d: expected 1 to 1000", o.Times)
	case l.Timeout <= 0 || o.Warm < 0 || o.Settle < 0 || o.Pause < 0:
		return errors.New("--timeout, --warm, --settle, --pause: expected no negative times")
	case o.Lease < allocsvr.MinLease || o.Lease > allocsvr.MaxLease:
		return fmt.Errorf("--lease %v: expected %v to %v", o.Lease, allocsvr.MinLease, allocsvr.MaxLease)
	}
	if err := o.checkEngine(sc); err != nil {
		return err
	}
	if sc.Sets > 0 && l.Space != "" && !o.attached() {
		return fmt.Errorf("%s --space %q: the root has all sections of exact spaces: expected no --space", sc.Name, l.Space)
	}
	if o.addr != "" {
		if err := hostport.Dial(o.addr); err != nil {
			return fmt.Errorf("--addr %w", err)
		}
	}
	if o.web != "" {
		if _, _, err := net.SplitHostPort(o.web); err != nil {
			return fmt.Errorf("--web %q: expected host:port", o.web)
		}
		if sc.Needs == lab.NeedNetwork {
			return fmt.Errorf("--web: %s runs in network namespaces, which no browser reaches: expected --html", sc.Name)
		}
	}
	if o.attached() {
		switch {
		case sc.Needs == lab.NeedNetwork:
			return fmt.Errorf("%w: %s starts a cluster of its own: expected no --addr and no --ready-file", lab.ErrNoNamespaces, sc.Name)
		case !sc.Asks && o.readyFile == "":
			return fmt.Errorf("%s needs the process ids: expected --ready-file, as seqctl dev --processes --ready-file writes it", sc.Name)
		}
		return nil
	}
	return sc.Fits(o.Planned(), o.engine == engineEtcd, o.Node, o.Set)
}

// The engines that keep registers.
const (
	engineStore = "store"
	engineEtcd  = "etcd"
)

// checkEngine has an own cluster on etcd get its members, and refuses what no etcd does.
func (o *options) checkEngine(sc lab.Scenario) error {
	switch {
	case o.engine != engineStore && o.engine != engineEtcd:
		return fmt.Errorf("--engine %q: expected %s or %s", o.engine, engineStore, engineEtcd)
	case o.engine == engineEtcd && o.attached():
		return errors.New("--engine etcd is for a cluster of the drill's own: expected --etcd HOST:PORT,... beside --addr and --ready-file")
	case o.Etcd.Given() && !o.attached():
		return errors.New("--etcd is for a cluster of others: expected --addr or --ready-file, or --engine etcd to start members")
	case o.engine == engineEtcd && o.Load.Space != "":
		return fmt.Errorf("--space %q of mode=exact: %w: expected --engine store", o.Load.Space, etcdstore.ErrNoExact)
	case o.engine == engineEtcd && sc.Zones > 0:
		return fmt.Errorf("%s --engine etcd: members of etcd are in no zone: expected --engine store", sc.Name)
	case o.engine == engineEtcd:
		o.Members = o.Stores
	}
	return nil
}

func (o *options) attached() bool { return o.addr != "" || o.readyFile != "" }

func (o *options) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	format, err := ui.ParseFormat(o.output)
	if err != nil {
		return daemon.Usage(err)
	}
	if o.list {
		return printList(stdout, format)
	}
	sc, err := lab.FindDrill(args[0])
	var all []*options
	if err == nil {
		all, err = o.each(sc)
	}
	if err != nil {
		return daemon.Usage(err)
	}
	if sc.Needs == lab.NeedNetwork && o.inside == "" {
		return all[0].insideNamespaces(ctx, stdout, stderr)
	}
	if !o.modes {
		return all[0].drill(ctx, sc, stderr, func(r *lab.Result, failed error) error {
			return all[0].tell([]told{{r, failed}}, r, format, stdout, func() *ui.Table { return table(r, stdout) })
		})
	}
	return compare(ctx, all, sc, format, stdout, stderr)
}

// each returns the options of each run: one, or with --modes one for each mode.
func (o *options) each(sc lab.Scenario) ([]*options, error) {
	spaces := []string{o.Load.Space}
	if o.modes {
		if o.attached() || o.Load.Space != "" || o.web != "" || o.engine != engineStore {
			return nil, errors.New("--modes: expected no --space, --addr, --ready-file, --web and --engine")
		}
		spaces = []string{"", "strict:mode=strict", "exact"}
	}
	var all []*options
	for _, space := range spaces {
		one := *o
		one.Load.Space = space
		if err := one.prepare(sc); err != nil {
			return nil, err
		}
		all = append(all, &one)
	}
	return all, nil
}

// prepare checks the options, and completes the plan of the drill's own cluster.
func (o *options) prepare(sc lab.Scenario) error {
	o.Config.Config = sc.Shaped(o.Config.Config)
	if err := o.check(sc); err != nil || o.attached() {
		return err
	}
	o.Dir = "drill" // to be replaced by a temporary one
	var err error
	if o.Load.Space != "" {
		err = o.prepareSpace()
	}
	if o.Load.SuspectAfter = o.suspectAfter; o.suspectAfter > 0 {
		args := []string{"--suspect-after", o.suspectAfter.String()}
		o.Args = map[localcluster.Role][]string{localcluster.RoleAlloc: args, localcluster.RoleRouter: args}
	}
	return errors.Join(err, o.Validate())
}

// prepareSpace reads --space for the drill's own cluster.
func (o *options) prepareSpace() error {
	space, err := seq.ParseSpace(o.Load.Space)
	if err == nil {
		_, err = seq.NewMapping(seq.Space{Name: seq.DefaultSpace}, space)
	}
	if err == nil && (space != seq.Space{Name: space.Name, Mode: space.Mode, Tickets: space.Tickets} || space.Mode == seq.UniqueOnly) {
		err = fmt.Errorf("%w: expected no other settings than mode=%s, %s or %s, and tickets=D", seq.ErrBadMapping, seq.Ordered, seq.Strict, seq.Exact)
	}
	if err != nil {
		return fmt.Errorf("--space %q: %w", o.Load.Space, err)
	}
	text := space.Name + ":mode=" + string(space.Mode)
	if space.Mode == "" || space.Mode == seq.Exact {
		text = lab.ExactSpace(space.Name)
	}
	if space.Tickets > 0 {
		text += ",tickets=" + space.Tickets.String()
	}
	o.Load.Space, o.Spaces = space.Name, []string{text}
	return nil
}

// entry is a line of --list.
type entry struct {
	Name string `json:"name"`
	What string `json:"what"`
	Own  bool   `json:"own_cluster_only"` // in network namespaces, made for it
}

func printList(w io.Writer, format ui.Format) error {
	rows := []entry{}
	for _, sc := range lab.Drills() {
		rows = append(rows, entry{sc.Name, sc.What, sc.Needs == lab.NeedNetwork})
	}
	return ui.Print(w, format, rows, func() *ui.Table {
		t := ui.NewTable("drill", "what it does")
		for _, r := range rows {
			t.Row(r.Name, r.What)
		}
		return t
	})
}

// completeNodes returns the nodes of the cluster that the drill would start.
func (o *options) completeNodes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return o.nodes(), cobra.ShellCompDirectiveNoFileComp
}

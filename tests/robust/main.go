// Command robust breaks a cluster of real processes under load and judges every answer:
// each kind of fault once, or random ones for a duration. It exits 1 when a promise was
// broken, a process did not do what the fault should make it do, or the cluster did not
// recover.
//
//	go run ./tests/robust -bin bin                        # every kind once, a table
//	go run ./tests/robust -bin bin -soak 30m -seed 7      # a random fault every 5 to 15 s
package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/lab/netlab"
	"github.com/seqsvr/seqsvr/tests/robust/rounds"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "robust:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	rounds.Config
	rounds.Plan
	json, kinds, inside string
	loopback, sets      bool
}

func flags(args []string) (*options, error) {
	o := &options{Config: rounds.DefaultConfig(), Plan: rounds.Plan{Once: true}}
	fs := flag.NewFlagSet("robust", flag.ContinueOnError)
	fs.StringVar(&o.Bin, "bin", "bin", "`folder` of the daemons' binaries")
	fs.StringVar(&o.ForgetFS, "forgetfs", "", "the disk helper's `binary`; empty: without the faults that need it")
	fs.IntVar(&o.Stores, "stores", o.Stores, "StoreSvr")
	fs.IntVar(&o.Allocs, "allocs", o.Allocs, "AllocSvr")
	fs.DurationVar(&o.Lease, "lease", o.Lease, "of the AllocSvr")
	fs.DurationVar(&o.Patience, "patience", o.Patience, "for the cluster to serve everything after a fault")
	fs.DurationVar(&o.Duration, "soak", 0, "random faults for so long; 0: every kind once")
	fs.DurationVar(&o.Budget, "budget", 0, "without -soak: in random order, and what is left after so long is skipped; 0: all, in order")
	fs.Uint64Var(&o.Seed, "seed", 0, "of the random choices; 0: a fresh one, which is printed")
	fs.DurationVar(&o.Least, "least", 5*time.Second, "from one random fault to the next, at least")
	fs.DurationVar(&o.Most, "most", 15*time.Second, "and at most, unless recovery takes longer")
	fs.IntVar(&o.Rate, "rate", 250, "calls a second that begin")
	fs.StringVar(&o.kinds, "kinds", "", "only faults with one of these `texts`, by commas, in their names")
	fs.StringVar(&o.json, "json", "", "write the report to this `file` too, that of Sets to FILE-sets.json")
	fs.BoolVar(&o.sets, "sets", false, "only faults of a cluster of two Sets; else they come after the others, if each is played once")
	fs.BoolVar(&o.loopback, "loopback", false, "without network namespaces")
	fs.BoolVar(&o.Keep, "keep", false, "leave the cluster's directory, with its logs, and say where it is")
	fs.StringVar(&o.inside, "inside", "", "prefix of the namespaces that this process runs in the hub of; set by itself")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case fs.NArg() > 0:
		return nil, fmt.Errorf("argument %q: expected flags only", fs.Arg(0))
	case o.Stores < 3 || o.Stores > localcluster.MaxStores || o.Allocs < 2 || o.Allocs > localcluster.MaxAllocs:
		return nil, fmt.Errorf("%d stores, %d allocs: expected 3 to %d, 2 to %d", o.Stores, o.Allocs, localcluster.MaxStores, localcluster.MaxAllocs)
	case o.Least <= 0 || o.Most < o.Least || o.Duration < 0 || o.Rate < 1:
		return nil, errors.New("-soak, -least, -most, -rate: expected positive, and least not above most")
	}
	o.Once = o.Duration == 0
	if o.Once {
		o.Least = time.Second
	}
	if o.kinds != "" {
		o.Kinds = strings.Split(o.kinds, ",")
	}
	if o.Seed == 0 {
		var b [8]byte
		_, _ = rand.Read(b[:]) // documented never to return an error
		o.Seed = binary.LittleEndian.Uint64(b[:]) >> 12
	}
	o.Progress = os.Stderr
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := flags(args)
	if err != nil {
		return err
	}
	if o.inside == "" && !o.loopback {
		err := o.runInside(ctx)
		if !errors.Is(err, netlab.ErrUnavailable) {
			return err
		}
		fmt.Fprintln(os.Stderr, "robust: on loopback:", err)
	}
	if o.inside != "" {
		o.Network = netlab.New(o.inside, o.nodes())
	}
	return o.play(ctx)
}

func (o *options) nodes() (names []string) {
	for _, n := range o.Planned() {
		names = append(names, n.Name)
	}
	return names
}

// namespaces of this program begin so.
const kind = "seqrobust-"

// runInside runs this program again in the hub of a network of its own.
func (o *options) runInside(ctx context.Context) error {
	more := func(prefix string) []string { return []string{"-seed", fmt.Sprint(o.Seed), "-inside", prefix} }
	err := netlab.RunAgain(ctx, kind, o.nodes(), more, os.Stdout, os.Stderr)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return fmt.Errorf("failed, see above; again with -seed %d", o.Seed)
	}
	return err
}

// play plays the scenarios of one cluster. If each is played once, it also plays the scenarios of Sets.
func (o *options) play(ctx context.Context) error {
	fmt.Fprintf(os.Stderr, "robust: seed %d\n", o.Seed)
	var failed error
	ofSets := o.Config.OfSets()
	if !o.sets && o.Has(o.Plan) {
		failed = o.site(ctx, o.Config, o.Plan, o.json)
	}
	if plan := o.Plan; (o.sets || o.Once) && ofSets.Has(plan) && ctx.Err() == nil {
		file := o.json
		if !o.sets {
			plan, file = plan.OfSets(), strings.TrimSuffix(file, ".json")+"-sets.json"
		}
		if o.json == "" {
			file = ""
		}
		failed = errors.Join(failed, o.site(ctx, ofSets, plan, file))
	}
	return failed
}

// site plays the scenarios of a plan on a cluster.
func (o *options) site(ctx context.Context, cfg rounds.Config, plan rounds.Plan, file string) error {
	site, err := rounds.Start(ctx, cfg)
	if err != nil {
		return err
	}
	defer site.Close()
	if o.Keep {
		fmt.Fprintln(os.Stderr, "robust: the cluster's directory stays:", site.Own.Dir)
	}
	report, failed := rounds.Run(ctx, site, plan)
	if report == nil {
		return failed
	}
	if err := site.Stop(context.WithoutCancel(ctx)); err != nil && failed == nil {
		failed = fmt.Errorf("stop in order at the end: %w", err)
	}
	if file != "" {
		failed = errors.Join(failed, localcluster.WriteJSON(file, report))
	}
	return errors.Join(failed, report.Text(os.Stdout))
}

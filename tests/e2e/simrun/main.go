package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/seqsvr/seqsvr/tests/sim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process whatever it does
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "simrun:", err)
		os.Exit(1)
	}
}

// errBroken: the protocol, or the simulator, has a bug.
var errBroken = errors.New("a promise is broken")

// exactLength of a run as WebAssembly: it collects no garbage, so the memory of a longer
// one adds up.
const exactLength = 2 * time.Minute

type flags struct {
	seed     uint64
	engine   string
	duration time.Duration
	hours    float64
	length   time.Duration
	workers  int
	native   bool
	all      bool
	trace    bool
	faults   string
	cache    string
}

var errFlag = errors.New("bad flag")

// engines are the engines of the fresh seeds, by the flag. A kept seed runs on the engine on which it was
// found.
var engines = map[string][]sim.Engine{
	"store": {sim.StoreEngine},
	"etcd":  {sim.EtcdEngine},
	"sets":  {sim.SetsEngine},
	"both":  {sim.StoreEngine, sim.EtcdEngine},
	"all":   {sim.StoreEngine, sim.EtcdEngine, sim.SetsEngine},
}

func parseFlags(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("simrun", flag.ContinueOnError)
	set.Uint64Var(&f.seed, "seed", 0, "first seed; 0 draws one")
	set.StringVar(&f.engine, "engine", "all", "what keeps the registers: store, etcd, both of them, sets (the stores of two Sets), or all, one seed after the other; -trace takes store for several")
	set.DurationVar(&f.duration, "duration", 0, "how long to run fresh seeds, of wall time")
	set.Float64Var(&f.hours, "hours", 0, "how much to simulate, in hours of virtual time")
	set.DurationVar(&f.length, "length", 0, "of one run, in virtual time; 0: 2m, and the seed's own if -native")
	set.IntVar(&f.workers, "workers", 2, "runs at the same time")
	set.BoolVar(&f.native, "native", false, "run processes of this machine: faster, not repeatable")
	set.BoolVar(&f.all, "all", false, "run to the end whatever breaks; the first failure is explained then")
	set.BoolVar(&f.trace, "trace", false, "run -seed alone and print every event; with -native until a run of it breaks, or for -duration")
	set.StringVar(&f.faults, "faults", "", "file of faults for -trace, one a line, in place of the seed's own")
	set.StringVar(&f.cache, "cache", filepath.Join(os.TempDir(), "seqsvr-simrun"), "folder for compiled code; empty: none")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if engines[f.engine] == nil {
		return f, fmt.Errorf("%w: -engine %q, expected store, etcd, sets, both or all", errFlag, f.engine)
	}
	if f.seed == 0 {
		var b [8]byte
		_, _ = rand.Read(b[:]) // documented never to return an error
		f.seed = binary.BigEndian.Uint64(b[:]) >> 16
	}
	if f.length == 0 && !f.native {
		f.length = exactLength
	}
	if f.duration == 0 && f.hours == 0 {
		f.duration = time.Minute
	}
	return f, nil
}

func run(ctx context.Context, out io.Writer, args []string) error {
	f, err := parseFlags(args)
	if err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "simrun-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var m *machine
	exact := func(ctx context.Context) (runner, error) {
		if m == nil {
			file, err := build(ctx, root, dir)
			if err != nil {
				return nil, err
			}
			if m, err = newMachine(ctx, file, f.cache); err != nil {
				return nil, err
			}
		}
		return m, nil
	}
	defer func() {
		if m != nil {
			_ = m.close(context.WithoutCancel(ctx))
		}
	}()
	if f.trace && !f.native {
		return traceOne(ctx, out, f, exact)
	}
	c := &campaign{exact: exact, out: out, first: f.seed, engines: engines[f.engine], length: f.length, wall: f.duration,
		virtual: time.Duration(f.hours * float64(time.Hour)), workers: f.workers, all: f.all}
	if c.kept, err = sim.KeptSeeds(filepath.Join(root, "tests", "sim", "testdata", "seeds.txt")); err != nil {
		return err
	}
	if f.native {
		n, err := buildNative(ctx, root, dir, f.workers)
		if err != nil {
			return err
		}
		defer n.close()
		if f.trace {
			return traceOne(ctx, out, f, func(context.Context) (runner, error) { return n, nil })
		}
		c.run = n
	} else if c.run, err = exact(ctx); err != nil {
		return err
	}
	c.kept = slices.DeleteFunc(c.kept, func(k sim.Kept) bool { return !slices.Contains(c.engines, k.Engine) })
	fmt.Fprintf(out, "%d kept seeds, then from seed %d on\n", len(c.kept), f.seed)
	return c.work(ctx)
}

// traceOne runs one seed and prints every event. Native runs of one seed differ: they are
// repeated until one breaks a promise.
func traceOne(ctx context.Context, out io.Writer, f flags, with func(context.Context) (runner, error)) error {
	job := sim.Job{Seed: f.seed, Engine: engines[f.engine][0], Length: f.length}
	if f.faults != "" {
		text, err := os.ReadFile(f.faults)
		if err != nil {
			return err
		}
		job.Faults, job.OwnFaults = []string{string(text)}, true
	}
	m, err := with(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	r, err := m.run(ctx, job, true)
	for f.native && err == nil && len(r.Violations) == 0 && time.Since(begun) < f.duration {
		r, err = m.run(ctx, job, true)
	}
	if err != nil {
		return err
	}
	printLines(out, r.Trace)
	var total sim.Report
	total.Add(r)
	fmt.Fprint(out, total)
	if len(r.Violations) > 0 {
		return fmt.Errorf("%w: seed %d: %s", errBroken, r.Seed, r.Violations[0])
	}
	return nil
}

// moduleRoot is the folder of the root module: the one above tests.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "tests", "sim")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("run this inside the repository")
		}
		dir = up
	}
}

// Command mutants tests the tests: it breaks every rule of the protocol's mutation list
// in a copy of the code, one after the other, and checks that tests fail.
//
//	go run ./tests/mutants [-only 3,settle-spreads] [-in client,router] [-sim] [-jobs 2] [-v]
//	go run ./tests/mutants -update -resume
//
// A mutant that changes bodies of functions only is compiled in together with all others,
// and the environment says which one is on: the test that caught it the last time is asked
// first (caught.txt, written by -update), then the tests of its packages that reach it. A
// mutant of another kind, or one that no such test catches, is compiled alone and run
// against all tests of the packages that it names, and, if these let it through or the list
// wants it, against a bounded simulation. The command guarantees that
//
//   - a test that catches a mutant passes on the code as it is, so that a failure is the
//     mutant's;
//   - a mutant is counted as caught only if it compiles and a test fails, and fails
//     again; the test is named;
//   - a mutant counts as a survivor only after all tests of its packages;
//   - a mutant whose text is no longer found in the code is an error, never a catch;
//   - the working tree is only read, except for caught.txt with -update.
//
// A rule may have several mutants, and is caught if all of them are. What belongs here:
// the mutants and what runs them. The tests that catch them belong to the packages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.StringVar(&o.only, "only", "", "rules to break, by number or name, for example 3,settle-spreads; all if empty")
	flag.StringVar(&o.in, "in", "", "packages whose mutants are tried, in this order, for example client,internal/wire/rpc; all if empty")
	flag.StringVar(&o.kept, "kept", "tests/mutants/caught.txt", "file of the tests that caught the mutants")
	flag.BoolVar(&o.update, "update", false, "write the file")
	flag.BoolVar(&o.resume, "resume", false, "leave out the mutants that the file has a verdict on for the same text of the file and the tests")
	flag.StringVar(&o.cache, "cache", filepath.Join(os.TempDir(), "seqsvr-mutants"), "folder that keeps what the tests reach, by test binary")
	flag.IntVar(&o.seeds, "seeds", simSeeds, "seeds of the simulation; 0 means none")
	flag.BoolVar(&o.sim, "sim", false, "run the simulation for every mutant, also if a package has caught it")
	flag.IntVar(&o.jobs, "jobs", 2, "mutants at the same time")
	flag.BoolVar(&o.verbose, "v", false, "show the commands, and what the failing tests print")
	flag.Parse()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

var (
	errSurvived = errors.New("the test suite lets mutants through")
	errUsage    = errors.New("bad arguments")
)

type options struct {
	only, in, kept, cache        string
	sim, update, resume, verbose bool
	jobs, seeds                  int
}

// run tries the mutants and writes one line for each of them, as they end.
func run(ctx context.Context, out io.Writer, o options) error {
	all, err := chosen(mutants(), o.only)
	if err != nil {
		return err
	}
	todo, err := inPackages(all, o.in)
	if err != nil {
		return err
	}
	if o.jobs < 1 || o.seeds < 0 {
		return fmt.Errorf("%w: %d jobs, %d seeds, expected 1 or more, 0 or more", errUsage, o.jobs, o.seeds)
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lab, err := newLab(ctx, root, out, o.verbose)
	if err != nil {
		return err
	}
	defer lab.close()
	lab.seeds = o.seeds
	r := &round{lab: lab, todo: todo, o: o, verdicts: make([]verdict, len(todo)), sums: make([]string, len(todo))}
	if !filepath.IsAbs(o.kept) {
		o.kept = filepath.Join(root, filepath.FromSlash(o.kept))
	}
	if r.kept, err = readKept(o.kept); err != nil {
		return err
	}
	for i, m := range todo {
		if r.sums[i], err = lab.sum(m); err != nil {
			return err
		}
	}
	if r.board, err = lab.board(all, maps.Clone(r.kept.by), o.jobs, o.cache); err != nil {
		return err
	}
	r.tryAll(cancel)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return summary(out, todo, r.verdicts)
}

// round is one run over mutants.
type round struct {
	lab      *lab
	board    *board
	kept     *kept
	todo     []mutant
	o        options
	verdicts []verdict
	sums     []string

	mu   sync.Mutex
	done int
}

// tryAll tries so many mutants at a time as there are jobs. It cancels everything at the
// first that could not be tried.
func (r *round) tryAll(cancel context.CancelCauseFunc) {
	next := make(chan int)
	var workers sync.WaitGroup
	for range r.o.jobs {
		workers.Go(func() {
			for i := range next {
				if err := r.try(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, i := range r.open() {
		next <- i
	}
	close(next)
	workers.Wait()
}

// open returns the mutants to try: with -resume, not the ones whose verdict still holds.
func (r *round) open() (left []int) {
	for i, m := range r.todo {
		if r.o.resume && r.kept.holds(m, r.sums[i]) {
			r.verdicts[i] = verdict{by: r.kept.by[m.String()], sim: r.kept.sim(m)}
		} else {
			left = append(left, i)
		}
	}
	r.done = len(r.todo) - len(left)
	r.lab.say("%d of %d mutants to try\n", len(left), len(r.todo))
	return left
}

func (r *round) try(i int) error {
	began := time.Now()
	m := r.todo[i]
	v, err := r.board.try(m, r.o.sim)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verdicts[i] = v
	r.done++
	r.lab.say("[%d/%d] %v: %v (%.0f s)\n", r.done, len(r.todo), m, v, time.Since(began).Seconds())
	if !r.o.update {
		return nil
	}
	r.kept.note(m, v, r.sums[i])
	return r.kept.write(mutants())
}

// summary repeats what survived and writes the last line, in rules; errSurvived if it is
// not good news.
func summary(out io.Writer, todo []mutant, verdicts []verdict) error {
	rules, survived := make(map[string]bool), make(map[string]bool)
	for i, m := range todo {
		rules[m.rule] = true
		if !verdicts[i].caught(m) {
			survived[m.rule] = true
			fmt.Fprintf(out, "not caught: %v: %v\n", m, verdicts[i])
		}
	}
	fmt.Fprintf(out, "%d of %d caught, by %d mutants\n", len(rules)-len(survived), len(rules), len(todo))
	if len(survived) > 0 {
		return errSurvived
	}
	return nil
}

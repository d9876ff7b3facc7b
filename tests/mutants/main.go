// Command mutants tests the tests: it breaks every rule of the protocol's mutation list
// in a copy of the code, one after the other, and checks that tests fail.
//
//	go run ./tests/mutants [-only 3,settle-spreads] [-sim] [-jobs 2] [-v]
//
// Each mutant is run against all tests of the packages that it names, and, if these let
// it through or the list wants it, against a bounded simulation. It guarantees that
//
//   - the packages pass on the code as it is, so that a failure is the mutant's;
//   - a mutant is counted as caught only if it compiles and a test fails, and fails
//     again; the test is named;
//   - a mutant whose text is no longer found in the code is an error, never a catch;
//   - the working tree is only read.
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
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.StringVar(&o.only, "only", "", "rules to break, by number or name, for example 3,settle-spreads; all if empty")
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
	only         string
	sim, verbose bool
	jobs         int
}

// run tries the mutants and writes one line for each of them, as they end.
func run(ctx context.Context, out io.Writer, o options) error {
	todo, err := chosen(mutants(), o.only)
	if err != nil {
		return err
	}
	if o.jobs < 1 {
		return fmt.Errorf("%w: %d jobs, expected 1 or more", errUsage, o.jobs)
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
	for _, m := range todo {
		if _, err := lab.applied(m); err != nil {
			return err
		}
	}
	if err := lab.baseline(todo); err != nil {
		return err
	}
	verdicts := tryAll(lab, todo, o, cancel)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return summary(out, todo, verdicts)
}

// tryAll tries so many mutants at a time as there are jobs. It cancels everything at the
// first that could not be tried.
func tryAll(lab *lab, todo []mutant, o options, cancel context.CancelCauseFunc) []verdict {
	verdicts := make([]verdict, len(todo))
	next := make(chan int)
	var workers sync.WaitGroup
	var done struct {
		sync.Mutex
		n int
	}
	for range o.jobs {
		workers.Go(func() {
			for i := range next {
				began := time.Now()
				v, err := lab.try(todo[i], o.sim)
				if err != nil {
					cancel(err)
					continue
				}
				verdicts[i] = v
				done.Lock()
				done.n++
				lab.say("[%d/%d] %v: %v (%.0f s)\n", done.n, len(todo), todo[i], v, time.Since(began).Seconds())
				done.Unlock()
			}
		})
	}
	for i := range todo {
		next <- i
	}
	close(next)
	workers.Wait()
	return verdicts
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

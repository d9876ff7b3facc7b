// Command mutate breaks a package in every place where a small change of its text is
// worth a test, one at a time, and says which changes no test sees.
//
//	go run ./tests/mutants/mutate [-files a.go,b.go] [-with ./tests/integration] [-most 100 -seed 7] ./storesvr/acceptor
//
// A part of a condition is taken for true and for false, < for <=, + for -, min for max; a
// statement is left out, a field of a literal or a result is zero or one more, a function
// returns at once. All of these are compiled into one test binary, and the environment
// says which one is on, so that a mutant costs the tests that reach it and no compiler.
//
// It guarantees that
//
//   - a change that no test reaches, or that no test that reaches it fails by, is printed;
//   - unless explained.txt says why it does no harm; an explanation of a change that is
//     no longer there is an error;
//   - the working tree is only read.
//
// What belongs here: the small changes that a machine can think of. The rules of the
// protocol are broken by hand, in the list of tests/mutants.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

type options struct {
	files, with, explained, cache string
	most, jobs                    int
	seed                          uint64
	killed                        bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.StringVar(&o.files, "files", "", "files of the package to change, for example section.go,step.go; all if empty")
	flag.StringVar(&o.with, "with", "", "further packages whose tests judge what the package's own let through")
	flag.StringVar(&o.explained, "explained", "tests/mutants/mutate/explained.txt", "file of the survivors that do no harm")
	flag.StringVar(&o.cache, "cache", filepath.Join(os.TempDir(), "seqsvr-mutate"), "folder for what is known of a test binary with its changes")
	flag.IntVar(&o.most, "most", 0, "changes to try at most, drawn by -seed; 0: all")
	flag.Uint64Var(&o.seed, "seed", 1, "of -most")
	flag.IntVar(&o.jobs, "jobs", 2, "changes at the same time")
	flag.BoolVar(&o.killed, "killed", false, "print what is killed as well, and by which test")
	flag.Parse()
	if err := run(ctx, os.Stdout, o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

var (
	errSurvived = errors.New("changes that no test sees")
	errUsage    = errors.New("bad arguments")
)

func run(ctx context.Context, out io.Writer, o options, args []string) error {
	if len(args) != 1 || o.jobs < 1 || o.most < 0 {
		return fmt.Errorf("%w: expected one package, -jobs 1 or more and -most 0 or more", errUsage)
	}
	dir, err := os.MkdirTemp("", "mutate-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	pkg, err := load(ctx, args[0], words(o.files))
	if err != nil {
		return err
	}
	known, err := readExplained(o.explained)
	if err != nil {
		return err
	}
	suites, err := pkg.build(ctx, dir, append([]string{args[0]}, words(o.with)...))
	if err != nil {
		return err
	}
	if err := known.stale(pkg); err != nil {
		return err
	}
	for _, s := range suites {
		if err := s.survey(ctx, out, dir, o.cache, len(pkg.places)); err != nil {
			return err
		}
	}
	t := &tally{out: out, killed: o.killed, known: known}
	t.tryAll(ctx, pick(pkg.places, o.most, o.seed), suites, o.jobs)
	if err := ctx.Err(); err != nil {
		return err
	}
	return t.summary(args[0])
}

func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// Command model explores the models of this folder with Debian's spin: every
// configuration as the rules are, which must have no error, and every mutant, a rule left
// out, in which spin must find one.
//
//	go run ./tests/model [-set quick|full|deep] [-only name,name] [-keep dir]
//
// It guarantees that
//
//   - a configuration counts as clean only if its exploration was complete: no bound of
//     depth, memory or time cut it short;
//   - a mutant counts as found only if an assertion of the model failed;
//   - the working tree is only read.
//
// What belongs here: the models, the table of what is explored, and what runs it.
// README.md says what the models leave out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	set := flag.String("set", "full", "how much: quick, full or deep")
	only := flag.String("only", "", "names of what to explore, with commas between; all of the set if empty")
	keep := flag.String("keep", "", "folder for the models' copies and traces; a temporary one if empty")
	flag.Parse()
	if err := run(ctx, os.Stdout, *set, *only, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
}

var (
	errUsage   = errors.New("bad arguments")
	errWrong   = errors.New("not all is as it must be")
	errNoSpin  = errors.New("spin or gcc is missing; apt-get install spin gcc")
	errNotDone = errors.New("the exploration is not complete")
)

// run explores what is chosen, as many at a time as there are processors, and writes one
// line for each and a last one for all.
func run(ctx context.Context, out io.Writer, set, only, keep string) error {
	chosen, err := choose(set, only)
	if err != nil {
		return err
	}
	if err := haveTools(); err != nil {
		return err
	}
	if keep == "" {
		if keep, err = os.MkdirTemp("", "model"); err != nil {
			return err
		}
		defer os.RemoveAll(keep)
	}
	begin := time.Now()
	results := make([]result, len(chosen))
	turn := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	var mu sync.Mutex // guards out
	for i, c := range chosen {
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			results[i] = c.explore(ctx, keep)
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintln(out, results[i])
		})
	}
	wg.Wait()
	line, err := sum(results)
	fmt.Fprintf(out, "%s, in %v\n", line, time.Since(begin).Round(time.Second))
	return err
}

// choose lists what is in the set, or has one of the names.
func choose(set, only string) ([]config, error) {
	size := slices.Index([]string{"quick", "full", "deep"}, set)
	if size < 0 {
		return nil, fmt.Errorf("%w: set %q, expected quick, full or deep", errUsage, set)
	}
	if only == "" {
		return slices.DeleteFunc(slices.Clone(table), func(c config) bool { return int(c.size) > size }), nil
	}
	var chosen []config
	for _, name := range strings.Split(only, ",") {
		i := slices.IndexFunc(table, func(c config) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: no configuration %q", errUsage, name)
		}
		chosen = append(chosen, table[i])
	}
	return chosen, nil
}

// sum is the last line, and an error if anything is not as it must be.
func sum(results []result) (string, error) {
	var all, good [3]int
	for _, r := range results {
		all[r.kind]++
		if r.err == nil && r.found == (r.kind != clean) {
			good[r.kind]++
		}
	}
	line := fmt.Sprintf("model: %d of %d configurations clean, %d of %d mutants found", good[clean], all[clean], good[mutant], all[mutant])
	if all[limit] > 0 {
		line += fmt.Sprintf(", %d of %d limits shown", good[limit], all[limit])
	}
	if good != all {
		return line, errWrong
	}
	return line, nil
}

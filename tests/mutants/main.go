// Command mutants tests the tests: it puts every line of the protocol's mutation list
// into a copy of the code, one after the other, and checks that the test suite fails.
//
//	go run ./tests/mutants [-only 3,7] [-v]
//
// It guarantees that
//
//   - the named tests pass on the code as it is, so that a failure is the mutant's;
//   - a mutant is counted as caught only if it compiles and a test fails, and the test
//     is named;
//   - a mutant whose text is no longer found in the code is an error, never a catch;
//   - the working tree is only read.
//
// A line may have several mutants, and is caught if all of them are. What belongs here:
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
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	only := flag.String("only", "", "lines of the list to try, for example 3,7; all if empty")
	verbose := flag.Bool("v", false, "show the commands, and what the failing tests print")
	flag.Parse()
	if err := run(ctx, os.Stdout, *only, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

var (
	errSurvived = errors.New("the test suite lets mutants through")
	errUsage    = errors.New("bad arguments")
)

// run tries the mutants of the lines and writes one line for each of them.
func run(ctx context.Context, out io.Writer, only string, verbose bool) error {
	chosen, err := chosenLines(only)
	if err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	lab, err := newLab(ctx, root, out, verbose)
	if err != nil {
		return err
	}
	defer lab.close()
	todo := slices.DeleteFunc(mutants(), func(m mutant) bool { return !chosen[m.line] })
	for _, m := range todo {
		if err := lab.applies(m); err != nil {
			return err
		}
	}
	if err := lab.baseline(todo); err != nil {
		return err
	}
	survived := make(map[int]bool)
	for line := 1; line <= lines; line++ {
		if why, waits := unbuilt[line]; waits && chosen[line] {
			report(out, line, "not built yet", why)
		}
		for _, m := range todo {
			if m.line != line {
				continue
			}
			verdict, err := lab.try(m)
			if err != nil {
				return err
			}
			if !verdict.caught {
				survived[line] = true
			}
			report(out, line, m.name, verdict.String())
		}
	}
	return summary(out, chosen, survived)
}

func report(out io.Writer, line int, name, what string) {
	fmt.Fprintf(out, "%-3d %-58s %s\n", line, name, what)
}

// summary writes the last line; errSurvived if it is not good news.
func summary(out io.Writer, chosen, survived map[int]bool) error {
	tried, waiting := 0, 0
	for line := range chosen {
		if _, waits := unbuilt[line]; waits {
			waiting++
		} else {
			tried++
		}
	}
	fmt.Fprintf(out, "%d of %d caught", tried-len(survived), tried)
	if waiting > 0 {
		fmt.Fprintf(out, ", %d not built yet", waiting)
	}
	fmt.Fprintln(out)
	if len(survived) > 0 {
		return errSurvived
	}
	return nil
}

// chosenLines reads the flag.
func chosenLines(only string) (map[int]bool, error) {
	chosen := make(map[int]bool)
	if only == "" {
		for line := 1; line <= lines; line++ {
			chosen[line] = true
		}
		return chosen, nil
	}
	for word := range strings.SplitSeq(only, ",") {
		line, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || line < 1 || line > lines {
			return nil, fmt.Errorf("%w: line %q, expected 1 to %d", errUsage, word, lines)
		}
		chosen[line] = true
	}
	return chosen, nil
}

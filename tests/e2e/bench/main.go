package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/seqsvr/seqsvr/tests/e2e/bench/own"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// emptyFlag makes this program the server of emptySubjects.
const emptyFlag = "empty"

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	root := flags.String("root", "../..", "folder of the module, with bin/ built")
	out := flags.String("out", "", "the report; its plots go into the folder of its name without .md (default docs/benchmarks.md in root)")
	from := flags.String("from", "", "write the report anew from this file, which an earlier run left, and measure nothing")
	revision := flags.String("against", "", "measure this tree beside a revision of it, in turn, and print the ratios; writes no report")
	empty := flags.String(emptyFlag, "", "be the server of the subject unary/empty, at the first of two `addresses`, with the routes of the second")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if addr, router, serve := strings.Cut(*empty, ","); serve {
		return own.ServeEmpty(ctx, addr, router)
	}
	dir, err := filepath.Abs(*root)
	if err != nil {
		return err
	}
	if *out == "" {
		*out = filepath.Join(dir, "docs", "benchmarks.md")
	}
	if *from != "" {
		data, err := load(*from)
		if err != nil {
			return err
		}
		return write(*out, data)
	}
	s, err := settingsOf(os.Getenv)
	if err != nil {
		return err
	}
	if *revision != "" {
		if len(s.only) == 0 {
			s.only = compared
		}
		return against(ctx, os.Stdout, dir, *revision, s)
	}
	data, err := measure(ctx, dir, s)
	if err != nil {
		return err
	}
	kept := filepath.Join(dir, "bin", "bench.json")
	if err := save(kept, data); err != nil {
		return err
	}
	if err := write(*out, data); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "wrote %s; the figures are in %s\n", *out, kept)
	return nil
}

func load(path string) (data report.Data, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return report.Data{}, err
	}
	if err := json.Unmarshal(text, &data); err != nil {
		return report.Data{}, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

func save(path string, data report.Data) error {
	text, err := json.MarshalIndent(data, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// write writes the report and its plots.
func write(path string, data report.Data) error {
	charts, err := data.Charts()
	if err != nil {
		return err
	}
	folder := strings.TrimSuffix(path, ".md")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, svg := range charts {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), []byte(svg), 0o644))
	}
	return errors.Join(err, os.WriteFile(path, []byte(data.Markdown()), 0o644))
}

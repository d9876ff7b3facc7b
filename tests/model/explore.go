package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

//go:embed *.pml *.inc
var models embed.FS

// haveTools is errNoSpin if a model cannot be explored here.
func haveTools() error {
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w: %w", errNoSpin, err)
		}
	}
	return nil
}

// result is how one exploration ended.
type result struct {
	config
	found  bool // an assertion failed
	states uint64
	depth  int
	took   time.Duration
	err    error
}

func (r result) String() string {
	verdict := "clean"
	switch {
	case r.err != nil:
		return fmt.Sprintf("%-28s FAILED: %v", r.name, r.err)
	case r.found && r.kind == clean:
		verdict = "VIOLATED"
	case r.found && r.kind == limit:
		verdict = "shown"
	case r.found:
		verdict = "found"
	case r.kind != clean:
		verdict = "NOT FOUND"
	}
	return fmt.Sprintf("%-28s %-9s %9d states, depth %4d, %6.1f s", r.name, verdict, r.states, r.depth, r.took.Seconds())
}

// explore makes the explorer of the model in a folder of its own below dir and runs it.
// The trace of an error stays there: spin -t replays it.
func (c config) explore(ctx context.Context, dir string) result {
	res := result{config: c}
	begin := time.Now()
	text, err := c.pan(ctx, filepath.Join(dir, c.name))
	res.took = time.Since(begin)
	if err != nil {
		res.err = err
		return res
	}
	res.found, res.states, res.depth, res.err = read(text)
	return res
}

// pan is what the explorer prints.
func (c config) pan(ctx context.Context, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	entries, err := models.ReadDir(".")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		text, err := models.ReadFile(e.Name())
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, e.Name()), text, 0o644)
		}
		if err != nil {
			return "", err
		}
	}
	args := []string{"-a"}
	for _, d := range strings.Fields(c.defines) {
		args = append(args, "-D"+d)
	}
	if _, err := command(ctx, dir, "spin", append(args, c.file)...); err != nil {
		return "", err
	}
	optimize := "-O2"
	if c.kind != clean { // most of its time goes into the compilation
		optimize = "-O1"
	}
	// NOREDUCE: there is one process, so there is no order of processes to reduce.
	if _, err := command(ctx, dir, "gcc", optimize, "-w", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=3000", "-o", "pan", "pan.c"); err != nil {
		return "", err
	}
	return command(ctx, dir, "./pan", "-m100000", "-w22", "-E")
}

func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %.400s", name, err, text)
	}
	return string(text), nil
}

var (
	ended  = regexp.MustCompile(`depth reached (\d+), errors: (\d+)`)
	stored = regexp.MustCompile(`(\d+) states, stored`)
)

var errOther = errors.New("an error that is no failed assertion")

// read takes the explorer's report apart.
func read(text string) (found bool, states uint64, depth int, err error) {
	end, many := ended.FindStringSubmatch(text), stored.FindStringSubmatch(text)
	if end == nil || many == nil {
		return false, 0, 0, fmt.Errorf("%w: %.400s", errNotDone, text)
	}
	depth, _ = strconv.Atoi(end[1])
	states, _ = strconv.ParseUint(many[1], 10, 64)
	found = strings.Contains(text, "assertion violated")
	switch {
	case end[2] != "0" && !found:
		err = fmt.Errorf("%w: %.400s", errOther, text)
	case end[2] == "0" && (strings.Contains(text, "Search not completed") || strings.Contains(text, "max search depth too small")):
		err = fmt.Errorf("%w: %.400s", errNotDone, text)
	}
	return found, states, depth, err
}

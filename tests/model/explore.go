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

// result describes the end of one exploration.
type result struct {
	config
	found  bool // an assertion failed
	states uint64
	depth  int
	memory int           // in MB
	cpu    time.Duration // of spin, gcc and the explorer, which a busy machine does not stretch
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
	return fmt.Sprintf("%-28s %-9s %9d states, depth %4d, %4d MB, %5.1f s of cpu", r.name, verdict, r.states, r.depth, r.memory, r.cpu.Seconds())
}

// explore makes the explorer of the model in a folder of its own below dir and runs it.
// The trace of an error stays there: spin -t replays it.
func (c config) explore(ctx context.Context, dir string) result {
	text, cpu, err := c.pan(ctx, filepath.Join(dir, c.name))
	if err != nil {
		return result{config: c, err: err}
	}
	res := read(text)
	res.config, res.cpu = c, cpu
	return res
}

// pan is what the explorer prints, and what it cost.
func (c config) pan(ctx context.Context, dir string) (text string, cpu time.Duration, err error) {
	if err := copyModels(dir); err != nil {
		return "", 0, err
	}
	args := []string{"-a"}
	for _, d := range strings.Fields(c.defines) {
		args = append(args, "-D"+d)
	}
	optimize := "-O1"
	if c.kind != clean { // most of its time goes into the compilation
		optimize = "-O0"
	}
	for _, step := range [][]string{
		append(append([]string{"spin"}, args...), c.file),
		// NOREDUCE: there is one process, so there is no order of processes to reduce.
		{"gcc", optimize, "-w", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=3000", "-o", "pan", "pan.c"},
		{"./pan", "-m100000", "-w22", "-E"},
	} {
		cmd := exec.CommandContext(ctx, step[0], step[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", 0, fmt.Errorf("%s: %w: %.400s", step[0], err, out)
		}
		text = string(out)
		cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return text, cpu, nil
}

func copyModels(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := models.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := models.ReadFile(e.Name())
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, e.Name()), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var (
	ended  = regexp.MustCompile(`depth reached (\d+), errors: (\d+)`)
	stored = regexp.MustCompile(`(\d+) states, stored`)
	usage  = regexp.MustCompile(`(\d+)\.\d+\s+total actual memory usage`)
)

var errOther = errors.New("an error that is no failed assertion")

// read takes the explorer's report apart.
func read(text string) (res result) {
	end, many := ended.FindStringSubmatch(text), stored.FindStringSubmatch(text)
	if end == nil || many == nil {
		return result{err: fmt.Errorf("%w: %.400s", errNotDone, text)}
	}
	res.depth, _ = strconv.Atoi(end[1])
	res.states, _ = strconv.ParseUint(many[1], 10, 64)
	if used := usage.FindStringSubmatch(text); used != nil {
		res.memory, _ = strconv.Atoi(used[1])
	}
	res.found = strings.Contains(text, "assertion violated")
	switch {
	case end[2] != "0" && !res.found:
		res.err = fmt.Errorf("%w: %.400s", errOther, text)
	case end[2] == "0" && (strings.Contains(text, "Search not completed") || strings.Contains(text, "max search depth too small")):
		res.err = fmt.Errorf("%w: %.400s", errNotDone, text)
	}
	return res
}

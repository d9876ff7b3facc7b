package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/seqsvr/seqsvr/tests/sim"
)

// native runs the simulator's test binary as a process of this machine, one a job.
type native struct{ file string }

// buildNative compiles the simulator of the module at root to a file in dir.
func buildNative(ctx context.Context, root, dir string) (native, error) {
	file := filepath.Join(dir, "sim.test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", file, "./tests/sim")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return native{}, fmt.Errorf("build the simulator: %w\n%s", err, out)
	}
	return native{file}, nil
}

// run implements runner; it never traces, since another run would take another course.
func (n native) run(ctx context.Context, job sim.Job, _ bool) (sim.Result, error) {
	text, err := json.Marshal(job)
	if err != nil {
		return sim.Result{}, err
	}
	cmd := exec.CommandContext(ctx, n.file, "-test.run=^TestGuest$")
	cmd.Env = append(os.Environ(), "SIM_JOB="+string(text), "GOMAXPROCS=1", "GOGC=3000", "GODEBUG=adaptivestackstart=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return sim.Result{}, fmt.Errorf("seed %d: %w\n%s", job.Seed, err, tail(out))
	}
	return parse(job, out)
}

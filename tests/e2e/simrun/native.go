package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/seqsvr/seqsvr/tests/sim"
)

// native runs the simulator's test binary as processes of this machine, one a worker,
// each for many jobs.
type native struct {
	file string
	idle chan *worker // those that wait for a job
}

// buildNative compiles the simulator of the module at root to a file in dir, for so many
// jobs at a time.
func buildNative(ctx context.Context, root, dir string, workers int) (native, error) {
	file := filepath.Join(dir, "sim.test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", file, "./tests/sim")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return native{}, fmt.Errorf("build the simulator: %w\n%s", err, out)
	}
	return native{file, make(chan *worker, workers)}, nil
}

// worker is one process.
type worker struct {
	cmd     *exec.Cmd
	jobs    io.WriteCloser
	results *bufio.Reader
	said    bytes.Buffer // on standard error; read only when the process has ended
}

// start runs a process until its jobs are closed. more is added to its environment.
func (n native) start(more ...string) (*worker, error) {
	cmd := exec.Command(n.file, "-test.run=^TestGuest$", "-test.timeout=0")
	// One thread is as many as a bubble can use.
	cmd.Env = append(os.Environ(), "SIM_JOB=-", "GOMAXPROCS=1", "GOGC=3000", "GOMEMLIMIT=400MiB", "GODEBUG=adaptivestackstart=1")
	cmd.Env = append(cmd.Env, more...)
	return begin(cmd)
}

// begin starts the process of a command, which takes jobs and gives results.
func begin(cmd *exec.Cmd) (*worker, error) {
	p := &worker{cmd: cmd}
	p.cmd.Stderr = &p.said
	var err error
	if p.jobs, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	results, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.results = bufio.NewReader(results)
	return p, p.cmd.Start()
}

// run implements runner. A traced run takes another course than one before it did.
func (n native) run(ctx context.Context, job sim.Job, trace bool) (sim.Result, error) {
	text, err := json.Marshal(job)
	if err != nil {
		return sim.Result{}, err
	}
	if trace {
		return n.traced(ctx, job, text)
	}
	var p *worker
	select {
	case p = <-n.idle:
	default:
		if p, err = n.start(); err != nil {
			return sim.Result{}, err
		}
	}
	r, err := p.do(ctx, job, text)
	if err != nil {
		return r, err
	}
	select {
	case n.idle <- p:
	default:
		p.end()
	}
	return r, nil
}

// traced does one job with a process of its own, whose folder for temporary files asks
// for the events.
func (n native) traced(ctx context.Context, job sim.Job, text []byte) (sim.Result, error) {
	dir := filepath.Dir(n.file)
	if err := os.WriteFile(filepath.Join(dir, sim.TraceFile), nil, 0o600); err != nil {
		return sim.Result{}, err
	}
	p, err := n.start("TMPDIR=" + dir)
	if err != nil {
		return sim.Result{}, err
	}
	r, err := p.do(ctx, job, text)
	if err == nil {
		p.end()
	}
	return r, err
}

// close ends the processes that wait.
func (n native) close() {
	for {
		select {
		case p := <-n.idle:
			p.end()
		default:
			return
		}
	}
}

// end lets a process without a job end; what it says to that is of no interest.
func (p *worker) end() {
	_ = p.jobs.Close()
	_, _ = io.Copy(io.Discard, p.results)
	_ = p.cmd.Wait()
}

// do has the process do one job. After an error it has ended; if ctx ended it, the error
// has the stacks of what it was at.
func (p *worker) do(ctx context.Context, job sim.Job, text []byte) (sim.Result, error) {
	defer context.AfterFunc(ctx, func() { _ = p.cmd.Process.Signal(syscall.SIGQUIT) })()
	_, _ = p.jobs.Write(append(text, '\n')) // a process that is gone says so below
	var out []byte
	for {
		line, err := p.results.ReadBytes('\n')
		out = append(out, line...)
		if bytes.HasPrefix(line, resultMark) {
			return parse(job, line)
		}
		if err != nil {
			_ = p.jobs.Close()
			err = p.cmd.Wait()
			if ctx.Err() != nil {
				return sim.Result{}, fmt.Errorf("seed %d: %w\n%s%s", job.Seed, context.Cause(ctx), tail(out), p.said.Bytes())
			}
			return sim.Result{}, fmt.Errorf("seed %d: the process ended: %v\n%s", job.Seed, err, tail(append(out, p.said.Bytes()...)))
		}
	}
}

package disks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// strace is the command line of a tracer that injects into fdatasync; the test skips
// where it cannot trace.
func strace(t *testing.T, inject string, more ...string) []string {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err != nil {
		t.Skip(err)
	}
	if out, err := exec.Command(path, "-o", "/dev/null", "-e", "trace=fdatasync", "true").CombinedOutput(); err != nil {
		t.Skipf("strace cannot trace here: %v: %s", err, out)
	}
	return append([]string{path, "-f", "-e", "trace=fdatasync", "-e", "inject=fdatasync:" + inject}, more...)
}

// attach injects into a store that runs already. It returns when every thread is traced:
// the counts of the injection begin with the next fdatasync.
func attach(t *testing.T, p *process, inject string) {
	t.Helper()
	argv := strace(t, inject, "-o", os.DevNull, "-p", strconv.Itoa(p.cmd.Process.Pid))
	tracer := &process{cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{})}
	tracer.cmd.Stdout, tracer.cmd.Stderr = &tracer.log, &tracer.log
	if err := tracer.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = tracer.cmd.Wait(); close(tracer.done) }()
	t.Cleanup(func() {
		_ = tracer.cmd.Process.Signal(os.Interrupt) // lets go of what it traces
		select {
		case <-tracer.done:
		case <-time.After(patience):
			tracer.kill()
		}
	})
	if !tracer.until(t, "traced", func() bool { return traced(p.cmd.Process.Pid) }) {
		t.Skipf("strace cannot attach here: %s", tracer.log.String())
	}
}

// traced says whether all threads of the process have a tracer.
func traced(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil || strings.Contains(string(text), "TracerPid:\t0\n") {
			return false
		}
	}
	return true
}

// commits is the number of commits in which the store is killed, one after the other.
const commits = 10

// TestKilledAtAnyFdatasyncAStoreKeepsWhatItAcknowledged goes over each fdatasync of a
// start (its commit counts the boot) and of ten commits: promises and steps in turn.
func TestKilledAtAnyFdatasyncAStoreKeepsWhatItAcknowledged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	initialise(t, dir)
	c := &caller{}
	for when := 1; when <= 2; when++ {
		p := start(t, dir, strace(t, fmt.Sprintf("signal=SIGKILL:when=%d", when), "-o", os.DevNull))
		if c.connect(t, p) { // strace counts by thread: the second was on another one
			c.until(t, p, 1)
		}
		p.until(t, "killed in its start", p.ended)
		again(t, dir, c)
	}
	for commit := 1; commit <= commits; commit++ {
		for when := 1; when <= 2; when++ {
			t.Run(fmt.Sprintf("commit %d, fdatasync %d", commit, when), func(t *testing.T) {
				p := start(t, dir, nil)
				if !c.connect(t, p) {
					t.Fatalf("it ended: %s", p.log.String())
				}
				c.check(t)
				run(t, c, commit-1)
				attach(t, p, fmt.Sprintf("signal=SIGKILL:when=%d", when))
				c.until(t, p, commit) // the second may be on another thread, and so of a later commit
				p.until(t, "killed in a commit", p.ended)
			})
			again(t, dir, c)
		}
	}
	if c.acked == 0 || c.round == 0 {
		t.Errorf("nothing was ever acknowledged: %+v", c)
	}
}

// until commits, from the n-th on, until the store has died of it.
func (c *caller) until(t *testing.T, p *process, n int) {
	t.Helper()
	c.preparing = max(c.preparing, 1)
	for ctx := harness.Within(t); !p.ended(); n++ {
		if err := c.commit(ctx, n); err != nil {
			return
		}
	}
}

// commit is one commit: a promise, or a step under it.
func (c *caller) commit(ctx context.Context, n int) error {
	if n%2 == 1 {
		return c.prepare(ctx)
	}
	return c.step(ctx)
}

func run(t *testing.T, c *caller, commits int) {
	t.Helper()
	if c.preparing == 0 {
		c.preparing = 1
	}
	for n := 1; n <= commits; n++ {
		if err := c.commit(harness.Within(t), n); err != nil {
			t.Fatal(err)
		}
	}
}

// again starts the store without any fault and checks what it has.
func again(t *testing.T, dir string, c *caller) {
	t.Helper()
	p := start(t, dir, nil)
	if !c.connect(t, p) {
		t.Fatalf("after the kill the store does not start: %s", p.log.String())
	}
	c.check(t)
	p.kill()
}

func TestAnFdatasyncThatFailsEndsTheStoreAndTheNextStartIsSound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	initialise(t, dir)
	c := &caller{}
	for when := 1; when <= 2; when++ {
		p := start(t, dir, nil)
		if !c.connect(t, p) {
			t.Fatalf("it ended: %s", p.log.String())
		}
		run(t, c, 4)
		attach(t, p, fmt.Sprintf("error=EIO:when=%d", when))
		ctx := harness.Within(t)
		var err error
		for err == nil && !p.ended() {
			err = errors.Join(c.prepare(ctx), c.step(ctx))
		}
		if err == nil || errors.Is(err, errVerdict) {
			t.Errorf("the caller got %v, want no answer", err)
		}
		p.wantEnd(t, "store cannot go on")
		again(t, dir, c)
	}
	p := start(t, dir, strace(t, "error=EIO:when=1", "-o", os.DevNull))
	p.wantEnd(t, "input/output error")
	again(t, dir, c)
}

// TestALeaseWaitsForNoSlowDisk: a renewal is answered while a commit hangs in fdatasync.
func TestALeaseWaitsForNoSlowDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	initialise(t, dir)
	p, c := start(t, dir, nil), &caller{}
	if !c.connect(t, p) {
		t.Fatalf("it ended: %s", p.log.String())
	}
	run(t, c, 2)
	renew := func() error {
		_, err := c.store.Renew(harness.Within(t), quorum.RenewRequest{Ref: c.ref, Session: session, Secret: secret, Name: "n", Addr: "n:1", Lease: time.Second})
		return err
	}
	if err := renew(); err != nil { // the first raises the lease bound, which is a commit
		t.Fatal(err)
	}
	attach(t, p, "delay_enter=3000000")
	for try := 0; ; try++ {
		stepped := make(chan error, 1)
		go func() { stepped <- c.step(harness.Within(t)) }()
		for range 10 { // some of them after the commit has begun
			if err := renew(); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case err := <-stepped: // the machine was that slow
			if err != nil {
				t.Fatal(err)
			}
			if try == 5 {
				t.Fatal("no renewal was answered while the commit was under way")
			}
			continue
		default:
		}
		if err := <-stepped; err != nil {
			t.Fatal(err)
		}
		c.check(t)
		return
	}
}

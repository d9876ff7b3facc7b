package storecare

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/history"
	"github.com/seqsvr/seqsvr/internal/localcluster"
	"github.com/seqsvr/seqsvr/seq"
)

// The times are for a busy machine: no test asserts how long anything takes.
const (
	patience = 3 * time.Minute
	poll     = 10 * time.Millisecond
	// lease is so long that no process loses one for want of a processor, and short
	// enough to be waited for.
	lease   = 3 * time.Second
	clients = 4
)

var bin string

func TestMain(m *testing.M) {
	flag.Parse()
	code := func() int {
		if testing.Short() {
			return m.Run()
		}
		var err error
		if bin, err = os.MkdirTemp("", "seqsvr-bin-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(bin)
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", bin+string(filepath.Separator), "./cmd/...")
		cmd.Dir = filepath.Join("..", "..")
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v: %s\n", err, out)
			return 1
		}
		return m.Run()
	}()
	os.Exit(code)
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for ctx := within(t); !ok(); <-time.After(poll) {
		if ctx.Err() != nil {
			t.Fatalf("after %v still not: %s", patience, what)
		}
	}
}

// start runs 3 stores, 2 allocators and a router.
func start(t *testing.T) *localcluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("real processes are left out by -short")
	}
	cfg := localcluster.DefaultConfig(filepath.Join(t.TempDir(), "cluster"))
	cfg.Bin, cfg.Lease, cfg.Sections, cfg.Step, cfg.Allocs = bin, lease, 32, 50, 2
	c, err := localcluster.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if t.Failed() {
			showLogs(t, c)
		}
	})
	ready(t, c)
	return c
}

func ready(t *testing.T, c *localcluster.Cluster) {
	t.Helper()
	if err := c.WaitReady(within(t)); err != nil {
		t.Fatal(err)
	}
}

func showLogs(t *testing.T, c *localcluster.Cluster) {
	for _, p := range c.Processes() {
		if text, err := os.ReadFile(p.Log); err == nil {
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			t.Logf("%s (%s), last lines:\n%s", p.Name, p.Exit(), strings.Join(lines[max(0, len(lines)-25):], "\n"))
		}
	}
}

// load is clients that take numbers until it is stopped.
type load struct {
	t       *testing.T
	begun   time.Time
	calls   history.Recorder
	good    atomic.Uint64
	stopped chan struct{}
	wg      sync.WaitGroup
	once    sync.Once
}

func startLoad(t *testing.T, c *localcluster.Cluster) *load {
	t.Helper()
	sdk, err := client.New(within(t), client.Config{Addrs: []string{c.GRPC()}, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	l := &load{t: t, begun: time.Now(), stopped: make(chan struct{})}
	for i := range clients {
		l.wg.Go(func() { l.run(sdk, i) })
	}
	t.Cleanup(func() { l.stop(); sdk.Close() })
	return l
}

func (l *load) run(sdk *client.Client, who int) {
	for n := 0; ; n++ {
		select {
		case <-l.stopped:
			return
		case <-time.After(2 * time.Millisecond):
		}
		uid := uint64((n*7 + who) % 97 * 64)
		call := history.Call{Key: history.Key{UID: uid}, Client: who, Start: time.Since(l.begun)}
		got, err := sdk.Next(context.Background(), client.Key{UID: seq.UID(uid)})
		call.End = time.Since(l.begun)
		if err != nil {
			call.Err = err.Error()
		} else {
			call.First, call.Last = uint64(got), uint64(got)
			l.good.Add(1)
		}
		l.calls.Add(call)
	}
}

// flows waits until more numbers have been handed out.
func (l *load) flows(what string) {
	l.t.Helper()
	from := l.good.Load()
	until(l.t, "numbers handed out "+what, func() bool { return l.good.Load() > from+200 })
}

func (l *load) stop() {
	l.once.Do(func() { close(l.stopped) })
	l.wg.Wait()
}

// check stops the load and judges its history.
func (l *load) check() history.Report {
	l.t.Helper()
	l.stop()
	report := history.Check(l.calls.Calls())
	l.t.Log(report.String())
	if err := report.Err(); err != nil {
		l.t.Error(err)
	}
	return report
}

// ended is how a command ended.
type ended struct {
	code   int
	stdout string
	stderr string
}

// seqctl runs a command to its end, with the addresses of the first stores.
func seqctl(t *testing.T, c *localcluster.Cluster, args ...string) ended {
	t.Helper()
	cmd := command(within(t), c, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("seqctl %q: %v", args, err)
	}
	return ended{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func command(ctx context.Context, c *localcluster.Cluster, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "seqctl"), args...)
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "SEQ_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	cmd.Env = append(cmd.Env, "SEQ_STORES="+strings.Join(c.Addrs(localcluster.RoleStore), ","), "SEQ_ADDR="+c.GRPC())
	return cmd
}

func (e ended) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if e.code != code {
		t.Fatalf("exit %d, want %d: %s%s", e.code, code, e.stdout, e.stderr)
	}
	for _, text := range texts {
		if !strings.Contains(e.stdout+e.stderr, text) {
			t.Errorf("%q is not in the output: %s%s", text, e.stdout, e.stderr)
		}
	}
}

// killAtStep runs a command that prints a line a step, and kills it as soon as it has
// printed so many; ended says that it came to its end before.
func killAtStep(t *testing.T, c *localcluster.Cluster, step int, args ...string) (atEnd bool) {
	t.Helper()
	cmd := command(within(t), c, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); {
		if n++; n == step {
			_ = cmd.Process.Kill()
		}
	}
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	if err != nil && cmd.ProcessState.Exited() {
		t.Fatalf("seqctl %q: %v: %s", args, err, stderr.String())
	}
	return err == nil
}

// addStore makes one more store and starts it.
func addStore(t *testing.T, c *localcluster.Cluster) *localcluster.Process {
	t.Helper()
	p, err := c.AddStore()
	if err != nil {
		t.Fatal(err)
	}
	startStore(t, p)
	return p
}

func startStore(t *testing.T, p *localcluster.Process) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if err := p.WaitListening(within(t)); err != nil {
		t.Fatal(err)
	}
}

func kill(t *testing.T, p *localcluster.Process) {
	t.Helper()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
}

package storecare

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/history"
	"github.com/seqsvr/seqsvr/internal/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/harness"
)

// The times are for a busy machine: no test asserts how long anything takes.
const (
	// lease is so long that no process loses one for want of a processor, and short
	// enough to be waited for.
	lease   = 3 * time.Second
	clients = 4
)

func TestMain(m *testing.M) { harness.Main(m) }

// start runs 3 stores, 2 allocators and a router.
func start(t *testing.T) *localcluster.Cluster {
	t.Helper()
	return harness.Start(t, func(cfg *localcluster.Config) {
		cfg.Lease, cfg.Sections, cfg.Step, cfg.Allocs = lease, 32, 50, 2
	})
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
	sdk, err := client.New(harness.Within(t), client.Config{Addrs: []string{c.GRPC()}, Timeout: 20 * time.Second})
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
	harness.Until(l.t, "numbers handed out "+what, func() bool { return l.good.Load() > from+200 })
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

// seqctl runs a command to its end, with the addresses of the first stores.
func seqctl(t *testing.T, c *localcluster.Cluster, args ...string) harness.Ended {
	t.Helper()
	return harness.Run(t, command(harness.Within(t), t, c, args...))
}

func command(ctx context.Context, t *testing.T, c *localcluster.Cluster, args ...string) *exec.Cmd {
	t.Helper()
	stores := strings.Join(c.Addrs(localcluster.RoleStore), ",")
	return harness.Command(ctx, t, []string{"SEQ_STORES=" + stores, "SEQ_ADDR=" + c.GRPC()}, "seqctl", args...)
}

// killAtStep runs a command that prints a line a step, and kills it as soon as it has
// printed so many; ended says that it came to its end before.
func killAtStep(t *testing.T, c *localcluster.Cluster, step int, args ...string) (atEnd bool) {
	t.Helper()
	cmd := command(harness.Within(t), t, c, args...)
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
	if err := p.WaitListening(harness.Within(t)); err != nil {
		t.Fatal(err)
	}
}

func kill(t *testing.T, p *localcluster.Process) {
	t.Helper()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
}

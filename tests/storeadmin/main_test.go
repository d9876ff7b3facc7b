package storeadmin

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// The times are for a busy machine: no test asserts how long anything takes.
const (
	// lease is so long that no process loses one for want of a processor, and short
	// enough to be waited for.
	lease   = 3 * time.Second
	callers = 16
	uids    = 97
	rate    = 300 // calls a second
)

func TestMain(m *testing.M) { harness.Main(m) }

// exactSpace has mode=exact, beside the default space.
const exactSpace = "ledger"

// start runs 3 stores, 2 allocators and a router.
func start(t *testing.T) *localcluster.Cluster {
	t.Helper()
	return harness.Start(t, func(cfg *localcluster.Config) {
		cfg.Lease, cfg.Sections, cfg.Step, cfg.Allocs = lease, 32, 50, 2
		cfg.Spaces = []string{lab.ExactSpace(exactSpace) + ",sections=32"}
	})
}

// load is callers that take numbers of both spaces until it is stopped. They take the exact numbers with
// request ids.
type load struct {
	*lab.Load
	t     *testing.T
	onces *lab.Onces
	plain atomic.Int64 // answers of the default space
	exact atomic.Int64
}

func startLoad(t *testing.T, c *localcluster.Cluster) *load {
	t.Helper()
	cluster, err := lab.Attach(harness.Within(t), c.GRPC(), "", etcdclient.Flags{}, harness.Patience)
	if err != nil {
		t.Fatal(err)
	}
	l := &load{t: t, onces: lab.NewOnces(seq.Space{Name: exactSpace, Window: seq.MaxWindow}, harness.Patience)}
	l.Load, err = lab.StartLoad(harness.Within(t), cluster, lab.LoadConfig{
		Callers: callers, UIDs: uids, Rate: rate, Timeout: 20 * time.Second, Seen: l.seen,
		Kinds: []lab.Kind{lab.NextKind(50), l.onces.Kind(50)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func (l *load) seen(c history.Call) {
	switch {
	case c.Err != "":
	case c.Space == exactSpace:
		l.exact.Add(1)
	default:
		l.plain.Add(1)
	}
}

// flows waits until more numbers of both spaces have been handed out.
func (l *load) flows(what string) {
	l.t.Helper()
	plain, exact := l.plain.Load(), l.exact.Load()
	harness.Until(l.t, "numbers handed out "+what, func() bool { return l.plain.Load() > plain+100 && l.exact.Load() > exact+100 })
}

// check stops the load, looks all ids up and judges its history.
func (l *load) check() history.Report {
	l.t.Helper()
	l.End()
	return judged(l.t, history.CheckExact(l.History.Calls(), l.audit(l.onces)))
}

// audit asks by the way of this load for what the keys of the requests hold.
func (l *load) audit(onces *lab.Onces) map[history.Key]history.Log {
	l.t.Helper()
	logs, err := onces.Audit(harness.Within(l.t), l.Load)
	if err != nil {
		l.t.Fatal(err)
	}
	return logs
}

// judged fails the test for a broken promise, and for requests that show nothing.
func judged(t *testing.T, report history.Report) history.Report {
	t.Helper()
	t.Log(report.String())
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	if report.Unanswered > 0 || report.Repeated == 0 || report.Replayed == 0 {
		t.Errorf("%d requests without an answer, %d repeated, %d replayed: want none, some and some", report.Unanswered, report.Repeated, report.Replayed)
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

package processes

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/localcluster"
	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// The times are for a busy machine: no test asserts how long anything takes.
const (
	patience = 3 * time.Minute // for a condition
	poll     = 10 * time.Millisecond
	// lease is so long that no process loses one for want of a processor: what is left
	// to see is what the test did.
	lease = 6 * time.Second
	// sections are enough for every node to have many, and few enough to be acquired
	// in one short message.
	sections = 256
)

// built is the folder of the binaries, made by the first test that needs it.
var built struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// binaries builds everything in cmd/, once.
func binaries(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("real processes are left out by -short")
	}
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "seqsvr-bin-"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", built.dir+string(filepath.Separator), "./cmd/...")
		cmd.Dir = filepath.Join("..", "..")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("go build: %w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
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

// start runs a cluster of 3 stores, 3 allocators and a router that serves. When the
// test fails, the ends of its logs are shown.
func start(t *testing.T, change func(*localcluster.Config)) *localcluster.Cluster {
	t.Helper()
	cfg := localcluster.DefaultConfig(filepath.Join(t.TempDir(), "cluster"))
	cfg.Bin, cfg.Lease, cfg.Sections = binaries(t), lease, sections
	if change != nil {
		change(&cfg)
	}
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
	const last = 25
	for _, p := range c.Processes() {
		text, err := os.ReadFile(p.Log)
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		t.Logf("%s (%s), last lines:\n%s", p.Name, p.Exit(), strings.Join(lines[max(0, len(lines)-last):], "\n"))
	}
}

// taken is how many numbers the allocators have handed out since they started.
func taken(t *testing.T, c *localcluster.Cluster) uint64 {
	t.Helper()
	var sum uint64
	for _, addr := range c.Addrs(localcluster.RoleAlloc) {
		conn, err := rpc.Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		status, err := pb.NewAdminClient(conn).Status(ctx, &pb.StatusRequest{})
		cancel()
		_ = conn.Close()
		if err == nil { // else asked again by the next poll
			sum += status.GetNumbers()
		}
	}
	return sum
}

// ended is how a command ended.
type ended struct {
	code   int
	stdout string
	stderr string
}

// run runs one of the binaries to its end.
func run(t *testing.T, name string, args ...string) ended {
	t.Helper()
	cmd := command(within(t), t, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	return ended{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func command(ctx context.Context, t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, filepath.Join(binaries(t), name), args...)
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "SEQ_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	return cmd
}

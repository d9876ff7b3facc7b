package harness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
)

// Patience bounds the wait for a condition on a busy machine.
const Patience = 3 * time.Minute

const (
	poll      = 10 * time.Millisecond
	lastLines = 25 // of each log, when a test fails
)

// Within is a context for as long as Patience, or the test if that is shorter.
func Within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Until waits for a condition.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for ctx := Within(t); !ok(); <-time.After(poll) {
		if ctx.Err() != nil {
			t.Fatalf("after %v still not: %s", Patience, what)
		}
	}
}

// Start runs a cluster of 3 stores, 3 allocators and a router, or as change makes it, and
// waits until it serves. When the test fails, the ends of its logs are shown.
func Start(t testing.TB, change func(*localcluster.Config)) *localcluster.Cluster {
	t.Helper()
	c := Launch(t, change)
	Ready(t, c)
	return c
}

// AskOnce has the router wait for an AllocSvr that is slow for want of a processor. Another attempt
// takes further numbers, which a test that counts them would miss.
func AskOnce(cfg *localcluster.Config) {
	cfg.Args = map[localcluster.Role][]string{localcluster.RoleRouter: {"--attempt-timeout", "20s"}}
}

// Launch is Start that waits for nothing.
func Launch(t testing.TB, change func(*localcluster.Config)) *localcluster.Cluster {
	t.Helper()
	cfg := localcluster.DefaultConfig(filepath.Join(t.TempDir(), "cluster"))
	cfg.Bin = Binaries(t)
	if change != nil {
		change(&cfg)
	}
	c, err := localcluster.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		for _, p := range c.Processes() {
			NoPanic(t, p.Name, p.Log)
		}
		if t.Failed() {
			for _, p := range c.Processes() {
				ShowLog(t, p.Name+" ("+p.Exit()+")", p.Log)
			}
		}
	})
	return c
}

// Ready waits until the cluster serves.
func Ready(t testing.TB, c *localcluster.Cluster) {
	t.Helper()
	if err := c.WaitReady(Within(t)); err != nil {
		t.Fatal(err)
	}
}

// NoPanic fails the test if the log has a panic, also one that the daemon recovered from.
func NoPanic(t testing.TB, whose, file string) {
	t.Helper()
	if line := localcluster.PanicIn(file); line != "" {
		t.Errorf("%s: %s", whose, line)
	}
}

// ShowLog puts the end of a log into the log of the test.
func ShowLog(t testing.TB, whose, file string) {
	t.Helper()
	if text, err := os.ReadFile(file); err == nil {
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		t.Logf("%s, last lines:\n%s", whose, strings.Join(lines[max(0, len(lines)-lastLines):], "\n"))
	}
}

// Ended describes the end of a command.
type Ended struct {
	Code           int
	Stdout, Stderr string
}

// Want fails the test at another exit code, and reports each text that was not put out.
func (e Ended) Want(t testing.TB, code int, texts ...string) {
	t.Helper()
	if e.Code != code {
		t.Fatalf("exit %d, want %d: %s%s", e.Code, code, e.Stdout, e.Stderr)
	}
	for _, text := range texts {
		if !strings.Contains(e.Stdout+e.Stderr, text) {
			t.Errorf("%q is not in the output: %s%s", text, e.Stdout, e.Stderr)
		}
	}
}

// Command returns the command of one of the binaries. Its environment lacks this process's settings and has
// the settings in env.
func Command(ctx context.Context, t testing.TB, env []string, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, filepath.Join(Binaries(t), name), args...)
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "SEQ_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// Run runs a command to its end.
func Run(t testing.TB, cmd *exec.Cmd) Ended {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", cmd.Args, err)
	}
	return Ended{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

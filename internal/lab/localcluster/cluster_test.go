package localcluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// patience is far more than anything here takes.
const patience = 60 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	cfg.Bin = bin(t)
	c, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.WaitReady(within(t)); err != nil {
		t.Fatal(err)
	}
	return c
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for ctx := within(t); !ok(); <-time.After(poll) {
		if ctx.Err() != nil {
			t.Fatalf("still not: %s", what)
		}
	}
}

func TestAClusterStartsAndStopsInOrder(t *testing.T) {
	c := start(t, DefaultConfig(t.TempDir()))
	var names []string
	for _, p := range c.Processes() {
		names = append(names, p.Name)
		if p.Pid() == 0 || p.ServingPid() != p.Pid() {
			t.Errorf("%s: pid %d, serving %d, want the same", p.Name, p.Pid(), p.ServingPid())
		}
	}
	want := []string{"store-1", "store-2", "store-3", "alloc-1", "alloc-2", "alloc-3", "router-1"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("processes (-want +got)\n%s", diff)
	}
	if err := c.StopAll(within(t)); err != nil {
		t.Fatal(err)
	}
	for _, p := range c.Processes() {
		if p.Running() || p.Failed() {
			t.Errorf("%s runs or failed after StopAll: %s", p.Name, p.Exit())
		}
	}
	if err := c.WaitReady(within(t)); err != nil {
		t.Errorf("a cluster stopped on purpose: %v, want nothing to wait for", err)
	}
}

func TestARestartKeepsAddressesAndInitialisesNothing(t *testing.T) {
	dir := t.TempDir()
	first := start(t, DefaultConfig(dir))
	nodes, id := first.Nodes, first.ClusterID
	members, err := os.ReadFile(filepath.Join(dir, "store-2", "members"))
	if err != nil || string(members) != "store-1,store-2,store-3" {
		t.Errorf("store-2 was initialised with members %q, %v", members, err)
	}
	first.Close()
	second := start(t, DefaultConfig(dir)) // the fake init would fail
	if diff := cmp.Diff(nodes, second.Nodes); diff != "" {
		t.Errorf("nodes changed (-before +after)\n%s", diff)
	}
	if second.ClusterID != id {
		t.Errorf("cluster id %q, want %q", second.ClusterID, id)
	}
}

func TestAKilledProcessIsNotFailedAndStartsAgainAtItsAddress(t *testing.T) {
	c := start(t, DefaultConfig(t.TempDir()))
	p := c.Process("alloc-2")
	old := p.Pid()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if p.Running() || p.Failed() || !strings.Contains(p.Exit(), "killed") {
		t.Errorf("running %v, failed %v, exit %q; want ended on purpose by a kill", p.Running(), p.Failed(), p.Exit())
	}
	if err := p.Kill(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a second kill: %v, want ErrNotRunning", err)
	}
	if err := p.Restart(within(t)); err != nil {
		t.Fatal(err)
	}
	if p.Pid() == old || p.Pid() == 0 {
		t.Errorf("pid %d after %d, want another one", p.Pid(), old)
	}
	if err := c.WaitReady(within(t)); err != nil {
		t.Error(err)
	}
}

func TestAProcessThatIsKilledFromElsewhereHasFailed(t *testing.T) {
	c := start(t, DefaultConfig(t.TempDir()))
	p := c.Process("store-1")
	if err := syscall.Kill(p.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if !p.Failed() {
		t.Error("not failed")
	}
	if err := c.WaitReady(within(t)); !errors.Is(err, ErrExited) || !strings.Contains(err.Error(), "store-1") {
		t.Errorf("got %v, want ErrExited of store-1", err)
	}
}

func TestEverythingKilledStartsAgain(t *testing.T) {
	c := start(t, DefaultConfig(t.TempDir()))
	c.KillAll()
	if err := c.StartAll(); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := c.Process("store-1").Start(); !errors.Is(err, ErrRunning) {
		t.Errorf("start of a running process: %v, want ErrRunning", err)
	}
}

func TestAPausedProcessStopsAllTheSame(t *testing.T) {
	c := start(t, DefaultConfig(t.TempDir()))
	p := c.Process("alloc-1")
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(within(t)); err != nil {
		t.Error(err)
	}
}

func TestAKillUnderSupervisionHitsTheChildAndTheParentStartsAnother(t *testing.T) {
	cfg := DefaultConfig(t.TempDir())
	cfg.Supervise = true
	c := start(t, cfg)
	p := c.Process("alloc-3")
	parent, child := p.Pid(), p.ServingPid()
	if child == 0 || child == parent {
		t.Fatalf("serving pid %d, parent %d: want a child", child, parent)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "another child", func() bool { pid := p.ServingPid(); return pid != 0 && pid != child })
	if p.Pid() != parent {
		t.Errorf("parent %d, want still %d", p.Pid(), parent)
	}
	second := p.ServingPid()
	c.KillAll()
	if err := syscall.Kill(second, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the child %d outlived KillAll: %v", second, err)
	}
}

func TestAProcessThatRefusesToStartIsToldWithItsReason(t *testing.T) {
	cfg := DefaultConfig(t.TempDir())
	cfg.Bin = bin(t)
	cfg.Args = map[Role][]string{RoleRouter: {"--exit", "no such thing"}}
	c, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.WaitReady(within(t)); !errors.Is(err, ErrExited) || !strings.Contains(err.Error(), "router-1") || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("got %v, want ErrExited with the router's last words", err)
	}
}

func TestACommandLineCanBeWrapped(t *testing.T) {
	cfg := DefaultConfig(t.TempDir())
	cfg.Wrap = func(name string, argv []string) []string {
		return append([]string{"/usr/bin/env", "WRAPPED=" + name}, argv...)
	}
	c := start(t, cfg)
	if got := c.Process("store-1").argv[:2]; !slices.Equal(got, []string{"/usr/bin/env", "WRAPPED=store-1"}) {
		t.Errorf("argv begins %q", got)
	}
	if got := tail(t, c.Process("router-1")); !strings.Contains(got, c.GRPC()) {
		t.Errorf("the log says %q, want the address %s", got, c.GRPC())
	}
}

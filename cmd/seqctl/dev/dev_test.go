package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/cmd/seqctl/replay"
	"github.com/seqsvr/seqsvr/cmd/seqctl/setctl"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/ops/msglog"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
	"github.com/seqsvr/seqsvr/tests/kit/madelog"
)

// patience is far more than a start, a stop or a failover takes.
const patience = 3 * time.Minute

// seqctl runs a command line in this process.
func seqctl(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	root := ctl.Root()
	root.AddCommand(Command(), replay.Command(), setctl.Command())
	var out, log bytes.Buffer
	err = ctl.Execute(ctx, root, args, &out, &log)
	return out.String(), log.String(), err
}

// cluster is a `seqctl dev` that runs.
type cluster struct {
	readyFile
	cancel context.CancelFunc
	ended  chan error
	log    *strings.Builder // complete once ended
}

// up starts dev on a directory and waits for its ready file.
func up(t *testing.T, dir string, args ...string) *cluster {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ready.json")
	args = append([]string{"dev", "--data-dir", dir, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ready-file", file,
		"--sections", "128"}, args...) // few, so that a slow machine spends its time elsewhere
	ctx, cancel := context.WithCancel(context.Background())
	c := &cluster{cancel: cancel, ended: make(chan error, 1), log: &strings.Builder{}}
	go func() {
		stdout, stderr, err := seqctl(ctx, args...)
		c.log.WriteString(stdout + stderr)
		c.ended <- err
	}()
	deadline := time.Now().Add(patience)
	for {
		text, err := os.ReadFile(file)
		if err == nil {
			if err := json.Unmarshal(text, &c.readyFile); err != nil {
				t.Fatalf("ready file %q: %v", text, err)
			}
			t.Cleanup(func() {
				cancel()
				<-c.ended
			})
			return c
		}
		select {
		case err := <-c.ended:
			t.Fatalf("dev ended before it was ready: %v\n%s", err, c.log)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			cancel()
			t.Fatalf("no ready file in time: %v", <-c.ended)
		}
	}
}

// down stops it as Ctrl-C does.
func (c *cluster) down(t *testing.T) {
	t.Helper()
	c.cancel()
	err := <-c.ended
	c.ended <- err // for the cleanup
	if err != nil {
		t.Fatalf("stop: %v\n%s", err, c.log)
	}
}

// ask runs a verb and reads its JSON.
func (c *cluster) ask(t *testing.T, into any, args ...string) {
	t.Helper()
	out, _, err := seqctl(t.Context(), append(args, "--addr", c.GRPC, "--timeout", "60s", "-o", "json")...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatalf("%q printed %q: %v", args, out, err)
	}
}

type taken struct{ First, Last uint64 }

type played struct{ Events, Users, Duplicates, Regressions, Gaps uint64 }

// messages writes a made log of n messages.
func messages(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "messages.txt")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(madelog.Generate(file, 5, 100, n), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// calm is a lease that hardly any busy machine loses.
const calm = "4s"

// inOneOf wants a cycle without a gap in at most 3. If a machine keeps an allocator from the processor for
// a whole lease, the allocator loses its sections. Then numbers that were not handed out yet are skipped,
// as they must be. So one cycle with gaps proves nothing, and three are no accident. The function cycle
// itself checks the invariants.
func inOneOf(t *testing.T, cycle func() (gaps uint64)) {
	t.Helper()
	var gaps []uint64
	for range 3 {
		n := cycle()
		if n == 0 || t.Failed() {
			return
		}
		t.Logf("a cycle with gaps: %d", n)
		gaps = append(gaps, n)
	}
	t.Errorf("gaps in every cycle: %v, want one without", gaps)
}

// replayed replays a log and gives the gaps; all else must be well.
func (c *cluster) replayed(t *testing.T, log string, events uint64) (gaps uint64) {
	t.Helper()
	var got played
	c.ask(t, &got, "replay", log, "--attempt-timeout", "20s") // what is tried twice skips numbers
	if got.Events != events || got.Users == 0 || got.Duplicates+got.Regressions > 0 {
		t.Errorf("replay %+v, want %d events, no duplicates and no regressions", got, events)
	}
	return got.Gaps
}

// checkGoesOn uses a cluster, stops it and starts it again.
func checkGoesOn(t *testing.T, args ...string) {
	t.Helper()
	args = append(args, "--lease", calm)
	dir := t.TempDir()
	log := messages(t, 3000)
	c := up(t, dir, args...)
	inOneOf(t, func() (gaps uint64) {
		var before, after taken
		c.ask(t, &before, "next", "42", "--count", "10")
		if before.Last != before.First+9 {
			t.Errorf("numbers %+v, want 10", before)
		}
		gaps = c.replayed(t, log, 3000)
		c.ask(t, &before, "next", "42")
		c.down(t)

		again := up(t, dir, args...)
		if diff := cmp.Diff(c.GRPC+c.HTTP, again.GRPC+again.HTTP); diff != "" {
			t.Errorf("addresses moved:\n%s", diff)
		}
		c = again
		c.ask(t, &after, "next", "42")
		if after.First <= before.Last {
			t.Errorf("after the restart %+v, before it %+v", after, before)
		}
		gaps += after.First - before.Last - 1
		var current []struct{ Current uint64 }
		c.ask(t, &current, "current", "42")
		if len(current) != 1 || current[0].Current < after.Last {
			t.Errorf("current %+v after %+v, want at least that", current, after)
		}
		return gaps + c.replayed(t, log, 3000)
	})
	c.down(t)
}

func TestAClusterInOneProcessGoesOnWhereItWasStopped(t *testing.T) { checkGoesOn(t) }

func TestVerbsAgainstARunningCluster(t *testing.T) {
	c := up(t, t.TempDir(), "--allocs", "2", "--routers", "2", "--lease", "2s")
	var roles []localcluster.Role
	for _, p := range c.Processes {
		roles = append(roles, p.Role)
		if p.Pid != os.Getpid() || p.Addr == "" || p.Name == "" {
			t.Errorf("ready file has %+v", p)
		}
	}
	want := []localcluster.Role{"store", "store", "store", "alloc", "alloc", "router", "router"}
	if diff := cmp.Diff(want, roles); diff != "" {
		t.Errorf("roles (-want +got)\n%s", diff)
	}
	// On a busy machine a node is taken for dead at times.
	harness.Until(t, "the status to be healthy", func() bool {
		out, _, _ := seqctl(t.Context(), "status", "--addr", c.GRPC, "--timeout", "60s", "-o", "json")
		var status struct{ Health string }
		if err := json.Unmarshal([]byte(out), &status); err != nil {
			t.Fatalf("status printed %q: %v", out, err)
		}
		return status.Health == "healthy"
	})
	harness.Until(t, "stores and allocators at least among the members", func() bool {
		var members []struct{ Name string }
		c.ask(t, &members, "members")
		return len(members) >= 5
	})
	var raised struct{ Current uint64 }
	c.ask(t, &raised, "raise", "7", "500")
	var next taken
	c.ask(t, &next, "next", "7")
	if raised.Current < 500 || next.First <= raised.Current {
		t.Errorf("raised to %+v, then %+v", raised, next)
	}
	var keyed taken
	c.ask(t, &keyed, "next", "--key", "room:7", "--count", "3")
	if keyed.First < 1 || keyed.Last != keyed.First+2 {
		t.Errorf("by key %+v, want 3 numbers", keyed)
	}
	var leases []struct{ Node string }
	c.ask(t, &leases, "leases", "0", "1")
	if len(leases) != 2 {
		t.Errorf("leases %+v, want 2", leases)
	}
	for _, line := range []string{"drain nobody", "move 999999 alloc-1", "next 1 --space none"} {
		if _, _, err := seqctl(t.Context(), append(strings.Fields(line), "--addr", c.GRPC)...); err == nil || errors.Is(err, daemon.ErrUsage) {
			t.Errorf("%s: got %v, want a failure", line, err)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.txt")
	if err := os.WriteFile(bad, []byte("1 2 3\nnonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := seqctl(t.Context(), "replay", bad, "--addr", c.GRPC); !errors.Is(err, msglog.ErrBadLine) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a bad log: got %v, want ErrBadLine with line 2", err)
	}
}

func TestTheSameDirectoryIsNotUsedTwiceAtOnce(t *testing.T) {
	dir := t.TempDir()
	up(t, dir, "--stores", "1", "--allocs", "1")
	_, _, err := seqctl(t.Context(), "dev", "--data-dir", dir, "--stores", "1", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
	if !errors.Is(err, localcluster.ErrInUse) {
		t.Errorf("got %v, want ErrInUse", err)
	}
}

func TestAWrongCallIsAUsageErrorThatNamesWhatIsWrong(t *testing.T) {
	tests := []struct {
		line string
		want string
	}{
		{"now", "seqctl dev"},
		{"--stores 0", "0 stores"},
		{"--stores 99", "99 stores"},
		{"--allocs 0", "0 allocs"},
		{"--routers 0", "0 routers"},
		{"--sections 0", "--sections 0"},
		{"--sections 9999999", "--sections 9999999"},
		{"--step 0", "--step 0"},
		{"--space pts:window=10m", "mode=exact only"},
		{"--space pts:mode=exact,window=25h", "24h"},
		{"--space pts:mode=exact,window=0", "no duration above 0"},
		{"--space pts:mode=loose", "unique-only or exact"},
		{"--space user", "twice"},
		{"--lease 1ms", "--lease 1ms"},
		{"--lease 1h", "--lease 1h"},
		{"--listen here", "--listen"},
		{"--http 80", "--http"},
		{"--supervise", "--processes"},
		{"--log-level loud", "loud"},
		{"--processes --bin /does/not/exist --listen 127.0.0.1:0 --http 127.0.0.1:0 --console 127.0.0.1:0", "storesvr"},
	}
	for _, test := range tests {
		args := append([]string{"dev", "--data-dir", t.TempDir()}, strings.Fields(test.line)...)
		if _, _, err := seqctl(t.Context(), args...); !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want a usage error with %q", test.line, err, test.want)
		}
	}
}

// folder of the binaries, made by TestMain and filled when first asked for.
var folder string

// binaries builds the daemons once for all tests of this package.
var binaries = sync.OnceValues(func() (string, error) {
	dir := folder
	out, err := exec.Command("go", "build", "-o", dir, "../../storesvr", "../../allocsvr", "../../router").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the daemons: %w\n%s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "seqsvr-bin-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

func built(t *testing.T) string {
	t.Helper()
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAClusterOfProcessesGoesOnWhereItWasStopped(t *testing.T) {
	checkGoesOn(t, "--processes", "--bin", built(t))
}

func TestASupervisedClusterGoesOnWhereItWasStopped(t *testing.T) {
	checkGoesOn(t, "--processes", "--supervise", "--bin", built(t))
}

// kill ends processes of the ready file as kill -9 does.
func (c *cluster) kill(match func(process) bool) error {
	var errs []error
	for _, p := range c.Processes {
		if match(p) {
			errs = append(errs, syscall.Kill(p.Pid, syscall.SIGKILL))
		}
	}
	return errors.Join(errs...)
}

func TestAStoreKilledDuringAReplayChangesNothingForCallers(t *testing.T) {
	log := messages(t, 20_000)
	inOneOf(t, func() uint64 {
		c := up(t, t.TempDir(), "--processes", "--bin", built(t), "--lease", calm)
		killed := make(chan error, 1)
		go func() { killed <- c.kill(func(p process) bool { return p.Name == "store-2" }) }()
		gaps := c.replayed(t, log, 20_000)
		if err := <-killed; err != nil {
			t.Error(err)
		}
		c.down(t)
		return gaps
	})
}

func TestEverythingKilledGoesOnAboveWhatWasHandedOut(t *testing.T) {
	dir := t.TempDir()
	c := up(t, dir, "--processes", "--bin", built(t))
	var before, after taken
	c.ask(t, &before, "next", "42", "--count", "25000")
	if err := c.kill(func(process) bool { return true }); err != nil {
		t.Error(err)
	}
	err := <-c.ended
	c.ended <- err
	if !errors.Is(err, errNothingLeft) {
		t.Errorf("dev ended with %v, want errNothingLeft", err)
	}
	again := up(t, dir, "--processes", "--bin", built(t))
	again.ask(t, &after, "next", "42")
	if after.First <= before.Last {
		t.Errorf("after the crash %+v, handed out before %+v", after, before)
	}
}

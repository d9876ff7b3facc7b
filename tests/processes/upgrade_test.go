package processes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/seqsvr/seqsvr/internal/localcluster"
	"github.com/seqsvr/seqsvr/tests/harness"
)

// previousEnv names the folder with the binaries of the previous release. Without it
// the release before the first one is this code under another version, which shows
// that the procedure itself loses nothing.
const previousEnv = "SEQSVR_PREVIOUS"

func previousBinaries(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv(previousEnv); dir != "" {
		return dir
	}
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-X github.com/seqsvr/seqsvr/internal/version.Version=previous",
		"-o", dir+string(filepath.Separator), "./cmd/storesvr", "./cmd/allocsvr", "./cmd/router")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	return dir
}

// installed is where each node's binary is, as a package manager would have it: one
// path, of which the content changes.
type installed struct {
	t   *testing.T
	dir string
}

func (i installed) path(node string) string { return filepath.Join(i.dir, node) }

func (i installed) put(node, binary string) {
	i.t.Helper()
	next := i.path(node) + ".new"
	if err := os.Symlink(binary, next); err != nil {
		i.t.Fatal(err)
	}
	if err := os.Rename(next, i.path(node)); err != nil {
		i.t.Fatal(err)
	}
}

func TestARollingUpgradeUnderLoadLosesAndSkipsNothing(t *testing.T) {
	log := bigLog(t)
	part := quarters(log)
	bin := installed{t, t.TempDir()}
	previous := previousBinaries(t)
	c := start(t, func(cfg *localcluster.Config) {
		smallSteps(cfg)
		cfg.Wrap = func(name string, argv []string) []string {
			bin.put(name, filepath.Join(previous, filepath.Base(argv[0])))
			return append([]string{bin.path(name)}, argv[1:]...)
		}
	})
	r := startReplay(t, c)
	r.feed(part[0])
	r.until("some answered by the previous release", func() bool { return taken(t, c) >= uint64(len(part[0])/2) })
	// The order of docs/operations.md: a store is asked by newer nodes before it asks
	// anybody, an allocator before a router.
	program := map[localcluster.Role]string{localcluster.RoleStore: "storesvr", localcluster.RoleAlloc: "allocsvr", localcluster.RoleRouter: "router"}
	for i, role := range []localcluster.Role{localcluster.RoleStore, localcluster.RoleAlloc, localcluster.RoleRouter} {
		r.feed(part[i+1])
		for _, p := range c.Processes(role) {
			bin.put(p.Name, filepath.Join(harness.Binaries(t), program[role]))
			if err := p.Restart(harness.Within(t)); err != nil {
				t.Fatal(err)
			}
			harness.Ready(t, c)
			if exe, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(p.Pid()), "exe")); err == nil && filepath.Dir(exe) != harness.Binaries(t) {
				t.Errorf("%s runs %s after its upgrade", p.Name, exe)
			}
		}
	}
	got, answers := r.finish()
	last, skipped := check(t, log, answers)
	wantClean(t, log, got, last, skipped)
}

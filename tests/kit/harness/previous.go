package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// PreviousCommit is the version before: the oldest build with which this tree must be able to
// share a cluster.
const PreviousCommit = "c10e429f026207a42a9dff9c02c0cf431d187371"

// PreviousEnv names a folder with binaries of the version before. Without it Previous builds
// them of the history.
const PreviousEnv = "SEQSVR_PREVIOUS"

var previous struct {
	once    sync.Once
	dir     string
	missing string // why the history does not have the commit
	err     error
}

// Previous returns the folder of the binaries of the version before. They are built once and
// kept in the user's cache, by the commit. Where the history does not reach back to it, as in a
// shallow clone, the test is skipped.
func Previous(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("real processes are left out by -short")
	}
	if dir := os.Getenv(PreviousEnv); dir != "" {
		return dir
	}
	previous.once.Do(func() { previous.dir, previous.missing, previous.err = buildPrevious() })
	if previous.missing != "" {
		t.Skipf("no build of the version before: %s; %s may name a folder with its binaries", previous.missing, PreviousEnv)
	}
	if previous.err != nil {
		t.Fatal(previous.err)
	}
	return previous.dir
}

func buildPrevious() (dir, missing string, err error) {
	root, err := Root()
	if err != nil {
		return "", "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", "", err
	}
	dir = filepath.Join(cache, "seqsvr", "previous-"+PreviousCommit)
	if _, err := os.Stat(dir); err == nil {
		return dir, "", nil
	}
	git := func(args ...string) *exec.Cmd { return exec.Command("git", append([]string{"-C", root}, args...)...) }
	if out, err := git("cat-file", "-e", PreviousCommit+"^{commit}").CombinedOutput(); err != nil {
		return "", fmt.Sprintf("commit %.7s is not in the history: %v %s", PreviousCommit, err, strings.TrimSpace(string(out))), nil
	}
	temp, err := os.MkdirTemp("", "seqsvr-previous-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(temp)
	tree, made := filepath.Join(temp, "tree"), filepath.Join(temp, "bin")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return "", "", err
	}
	archive := filepath.Join(temp, "tree.tar")
	build := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-o", made+string(filepath.Separator), "./cmd/...")
	build.Dir, build.Env = tree, append(os.Environ(), "CGO_ENABLED=0")
	for _, cmd := range []*exec.Cmd{git("archive", "-o", archive, PreviousCommit), exec.Command("tar", "-xf", archive, "-C", tree), build} {
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", "", fmt.Errorf("build the version before: %q: %w: %s", cmd.Args, err, out)
		}
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", "", err
	}
	return dir, "", publish(made, dir)
}

// publish moves the binaries to their place whole, unless another process was first.
func publish(made, dir string) error {
	near, err := os.MkdirTemp(filepath.Dir(dir), "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(near)
	if out, err := exec.Command("cp", "-r", made, filepath.Join(near, "bin")).CombinedOutput(); err != nil { // the cache may be on another file system
		return fmt.Errorf("keep the version before: %w: %s", err, out)
	}
	if err := os.Rename(filepath.Join(near, "bin"), dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return err
		}
	}
	return nil
}

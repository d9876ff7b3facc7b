package harness

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built is the folder of the binaries, made by the first test that needs it.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// Main is the TestMain of a package that uses Binaries: it runs the tests, removes the
// binaries and exits.
func Main(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// Binaries builds everything in cmd/, once a process, and gives the folder. With -short
// the test is skipped: whoever needs binaries starts processes.
func Binaries(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("real processes are left out by -short")
	}
	built.once.Do(func() {
		root, err := Root()
		if err != nil {
			built.err = err
			return
		}
		if built.dir, built.err = os.MkdirTemp("", "seqsvr-bin-"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", built.dir+string(filepath.Separator), "./cmd/...")
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("go build: %w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
}

// errNoRoot: the working directory is not inside the repository.
var errNoRoot = errors.New("no go.mod of this module above the working directory")

// Root is the repository's folder: the nearest above the working directory that holds the
// module's go.mod, also from the module tests/e2e.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte("module github.com/seqsvr/seqsvr\n")) {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", errNoRoot
		}
		dir = above
	}
}

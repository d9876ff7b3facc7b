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
	for _, dir := range []string{built.dir, clocked.dir} {
		if dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}

// BinariesEnv names a folder that holds the binaries of this tree already, as make test has built them.
// Without it Binaries builds them.
const BinariesEnv = "SEQSVR_BIN"

// Binaries returns the folder of the binaries of everything in cmd/, which it builds once a process
// unless BinariesEnv names one. With -short the test is skipped: a test of binaries starts processes.
func Binaries(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("real processes are left out by -short")
	}
	if dir := os.Getenv(BinariesEnv); dir != "" {
		for _, name := range []string{"storesvr", "allocsvr", "router", "seqctl"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil { // also: go test forgets what it knows of older ones
				t.Fatalf("%s: %v", BinariesEnv, err)
			}
		}
		return dir
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
		cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-o", built.dir+string(filepath.Separator), "./cmd/...")
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
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

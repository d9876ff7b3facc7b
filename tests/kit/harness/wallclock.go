package harness

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
)

// wallAhead is added to package time: a file of eight bytes, mapped into memory, says by how many seconds
// time.Now is ahead. The test writes the file, and the process reads another time from then on.
const wallAhead = `
var wallPage []byte

func init() {
	name, _ := syscall.Getenv("WALL_AHEAD")
	if name == "" {
		return
	}
	fd, err := syscall.Open(name, syscall.O_RDWR, 0)
	if err != nil {
		panic("WALL_AHEAD: " + err.Error())
	}
	if wallPage, err = syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED); err != nil {
		panic("WALL_AHEAD: " + err.Error())
	}
}

func wallAhead() int64 {
	if wallPage == nil {
		return 0
	}
	return *(*int64)(unsafe.Pointer(&wallPage[0]))
}
`

// WallClocks are the wall clocks of a cluster's processes. Only the wall clock moves: monotonic time and the
// clock of leases stay.
type WallClocks struct {
	t   testing.TB
	dir string
}

// clocked is the folder of the binaries whose wall clocks a test can move, built once a process.
var clocked struct {
	once sync.Once
	dir  string
	err  error
}

// UseWallClocks starts the processes of a cluster from binaries whose wall clocks the test can move. They are
// built from this tree with another package time (go build -overlay).
func UseWallClocks(t testing.TB, cfg *localcluster.Config) *WallClocks {
	t.Helper()
	if testing.Short() {
		t.Skip("real processes are left out by -short")
	}
	clocked.once.Do(func() { clocked.dir, clocked.err = buildClocked() })
	if clocked.err != nil {
		t.Fatal(clocked.err)
	}
	w := &WallClocks{t, t.TempDir()}
	cfg.Bin = clocked.dir
	cfg.Wrap = func(name string, argv []string) []string {
		if _, err := os.Stat(w.file(name)); err != nil {
			w.Set(name, 0)
		}
		return append([]string{"env", "WALL_AHEAD=" + w.file(name)}, argv...)
	}
	return w
}

func (w *WallClocks) file(node string) string { return filepath.Join(w.dir, node) }

// Set moves the wall clock of a node to that far ahead of the machine's, in whole seconds; negative is behind.
// The node may run or not.
func (w *WallClocks) Set(node string, ahead time.Duration) {
	w.t.Helper()
	f, err := os.OpenFile(w.file(node), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = f.Write(binary.NativeEndian.AppendUint64(nil, uint64(ahead/time.Second)))
	if closed := f.Close(); err != nil || closed != nil {
		w.t.Fatal(err, closed)
	}
}

func buildClocked() (dir string, err error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(out)), "src", "time", "time.go")
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	changed := string(text)
	for _, edit := range [][2]string{
		{"import (\n", "import (\n\t\"syscall\"\n"},
		{"\t_ \"unsafe\" //", "\t\"unsafe\" //"},
		{"\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {", "\tsec, nsec, mono := runtimeNow()\n\tsec += wallAhead()\n\tif mono == 0 {"},
	} {
		if strings.Count(changed, edit[0]) != 1 {
			return "", fmt.Errorf("%s is not as this test knows it: %q stands there %d times", source, edit[0], strings.Count(changed, edit[0]))
		}
		changed = strings.Replace(changed, edit[0], edit[1], 1)
	}
	if dir, err = os.MkdirTemp("", "seqsvr-clocked-"); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: filepath.Join(dir, "time.go")}})
	if err != nil {
		return dir, err
	}
	for name, content := range map[string]string{"time.go": changed + wallAhead, "overlay.json": string(overlay)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return dir, err
		}
	}
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-buildvcs=false", "-trimpath",
		"-o", dir+string(filepath.Separator), "./cmd/storesvr", "./cmd/allocsvr", "./cmd/router")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build with a clock that can be moved: %w: %s", err, out)
	}
	return dir, nil
}

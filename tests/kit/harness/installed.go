package harness

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
)

// Installed is where each node's binary is, as a package manager would have it: one path, of which
// the content changes.
type Installed struct {
	t   testing.TB
	dir string
}

// Install has a cluster made and started by the binaries of a folder.
func Install(t testing.TB, cfg *localcluster.Config, bin string) *Installed {
	i := &Installed{t, t.TempDir()}
	cfg.Bin = bin
	cfg.Wrap = func(name string, argv []string) []string {
		i.Put(name, argv[0])
		return append([]string{i.path(name)}, argv[1:]...)
	}
	return i
}

func (i *Installed) path(node string) string { return filepath.Join(i.dir, node) }

// Put has a node start with that binary the next time.
func (i *Installed) Put(node, binary string) {
	i.t.Helper()
	next := i.path(node) + ".new"
	if err := os.Symlink(binary, next); err != nil {
		i.t.Fatal(err)
	}
	if err := os.Rename(next, i.path(node)); err != nil {
		i.t.Fatal(err)
	}
}

// Program is the binary of a role, as Install wants it in a folder.
func Program(role localcluster.Role) string {
	return map[localcluster.Role]string{localcluster.RoleStore: "storesvr", localcluster.RoleAlloc: "allocsvr", localcluster.RoleRouter: "router"}[role]
}

// Change has nodes of a cluster go over to the binaries of a folder, one after the other.
func (i *Installed) Change(c *localcluster.Cluster, bin string, nodes ...*localcluster.Process) {
	i.t.Helper()
	for _, p := range nodes {
		i.Put(p.Name, filepath.Join(bin, Program(p.Role)))
		if err := p.Restart(Within(i.t)); err != nil {
			i.t.Fatal(err)
		}
		Ready(i.t, c)
		if exe, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(p.Pid()), "exe")); err == nil && filepath.Dir(exe) != bin {
			i.t.Errorf("%s runs %s", p.Name, exe)
		}
	}
}

package processes

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// intruders are daemons that must not start beside a running cluster, or not in it.
func intruders(t *testing.T, c *localcluster.Cluster) {
	store := c.Process("store-1")
	t.Run("a second process on a database", func(t *testing.T) {
		wantFailure(t, run(t, "storesvr", "serve", "--data-dir", store.Dir, "--listen", "127.0.0.1:0"), 1, "in use by another process", store.Dir)
	})
	t.Run("init over a database", func(t *testing.T) {
		wantFailure(t, run(t, "storesvr", "init", "--data-dir", store.Dir, "--cluster", c.ClusterID, "--name", "store-1", "--members", "store-1,store-2,store-3"),
			1, "exists already", store.Dir)
	})
	t.Run("a second cluster in a directory", func(t *testing.T) {
		wantFailure(t, run(t, "seqctl", "dev", "--processes", "--data-dir", c.Dir, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"),
			1, "in use by another cluster", c.Dir)
	})
	t.Run("an AllocSvr of another cluster", func(t *testing.T) {
		wantFailure(t, run(t, "allocsvr", "--name", "stranger", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--cluster", "another",
			"--stores", strings.Join(c.Addrs(localcluster.RoleStore), ",")), 1, "foreign cluster", c.ClusterID)
	})
	t.Run("an AllocSvr under a name that is taken", func(t *testing.T) {
		wantFailure(t, run(t, "allocsvr", "--name", "alloc-1", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir(),
			"--stores", strings.Join(c.Addrs(localcluster.RoleStore), ",")), 1, "node name taken", "alloc-1")
	})
}

// emptyStore takes a store's database away. It does not come back as an empty one,
// and the others do without it.
func emptyStore(t *testing.T, c *localcluster.Cluster) {
	p := c.Process("store-3")
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(p.Dir); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-harness.Within(t).Done():
		t.Fatal("the store runs without a database")
	}
	if why := p.Exit(); !p.Failed() || !strings.Contains(why, "exit status 1") || !strings.Contains(why, "no database, run init first") {
		t.Errorf("it ended with %q", why)
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "store.db")); err == nil {
		t.Error("it made a database")
	}
}

func TestADatabaseThatCannotBeTrustedIsNotServed(t *testing.T) {
	whole := initStore(t)
	database := databaseOf(t, whole)
	text, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	copyWith := func(t *testing.T, text []byte) string {
		t.Helper()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(database)), text, 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	flipped := bytes.Clone(text)
	for at := 0; ; {
		found := bytes.Index(flipped[at:], []byte("origin"))
		if found < 0 {
			break
		}
		at += found
		flipped[at] ^= 1
	}
	rows := []struct {
		name string
		dir  string
		args []string
		code int
		want string
	}{
		{"none", t.TempDir(), nil, 1, "no database, run init first"},
		{"no directory named", "", nil, 2, "no data directory"},
		{"of another cluster", whole, []string{"--cluster", "another"}, 1, "foreign cluster"},
		{"empty", copyWith(t, nil), nil, 1, "database is damaged"},
		{"cut short", copyWith(t, text[:len(text)/2]), nil, 1, "database is damaged"},
		{"with its first pages overwritten", copyWith(t, append(bytes.Repeat([]byte("x"), 8192), text[8192:]...)), nil, 1, "database is damaged"},
		{"with a bit flipped", copyWith(t, flipped), nil, 1, "database is damaged"},
		{"something else", copyWith(t, bytes.Repeat([]byte("not a database\n"), 4096)), nil, 1, "database is damaged"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			args := []string{"serve", "--listen", "127.0.0.1:0"}
			if row.dir != "" {
				args = append(args, "--data-dir", row.dir)
			}
			wantFailure(t, run(t, "storesvr", append(args, row.args...)...), row.code, row.want)
		})
	}
	if after, err := os.ReadFile(database); err != nil || !bytes.Equal(after, text) {
		t.Errorf("a refused start changed the database (%v)", err)
	}
}

// initStore makes a store of the cluster "origin" and gives its directory.
func initStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	if got := run(t, "storesvr", "init", "--data-dir", dir, "--cluster", "origin", "--name", "a", "--members", "a,b,c", "--sections", "16"); got.Code != 0 {
		t.Fatalf("init: exit %d: %s", got.Code, got.Stderr)
	}
	return dir
}

func databaseOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%s holds %v, %v, want one database", dir, files, err)
	}
	return filepath.Join(dir, files[0].Name())
}

package storecare

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/seqsvr/seqsvr/internal/history"
	"github.com/seqsvr/seqsvr/internal/localcluster"
	"github.com/seqsvr/seqsvr/tests/harness"
)

func TestARestoreIntoANewEraRepeatsNothingThatWasHandedOutAfterTheBackup(t *testing.T) {
	c := start(t)
	l := startLoad(t, c)
	l.flows("at first")
	file := filepath.Join(t.TempDir(), "backup")
	seqctl(t, c, "store", "backup", "--out", file).Want(t, 0, c.ClusterID, "era 0")
	seqctl(t, c, "store", "backup", "--out", file).Want(t, 1, "exists")
	seqctl(t, c, "store", "check", file).Want(t, 0, " 0 wrong")
	seqctl(t, c, "store", "inspect", file).Want(t, 0, "section", "32")
	l.flows("after the backup")
	l.stop()
	before := l.calls.Calls()
	if err := c.StopAll(harness.Within(t)); err != nil {
		t.Fatal(err)
	}
	stores := c.Processes(localcluster.RoleStore)
	seqctl(t, c, "store", "check", stores[0].Dir).Want(t, 0, " 0 wrong")
	names := "store-1,store-2,store-3"
	restore := func(dir, name string, more ...string) harness.Ended {
		args := []string{"store", "restore", "--from", file, "--cluster", c.ClusterID, "--data-dir", dir, "--name", name, "--members", names}
		return seqctl(t, c, append(args, more...)...)
	}
	refusals(t, c, file, restore)
	for _, p := range stores {
		if err := os.RemoveAll(p.Dir); err != nil {
			t.Fatal(err)
		}
		restore(p.Dir, p.Name, "--era", "1").Want(t, 0, "era 1")
	}
	for _, p := range c.Processes(localcluster.RoleAlloc) { // parked counters are of the era before
		if files, err := os.ReadDir(p.Dir); err != nil || len(files) == 0 {
			t.Fatalf("%s parked nothing: %v", p.Name, err)
		}
	}
	if err := c.StartAll(); err != nil {
		t.Fatal(err)
	}
	harness.Ready(t, c)
	again := startLoad(t, c)
	again.begun = l.begun
	again.flows("in the new era")
	again.stop()
	report := history.Check(append(before, again.calls.Calls()...))
	t.Log(report.String())
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	seqctl(t, c, "store", "status", "-o", "json").Want(t, 0, `"era": 1`)
}

func refusals(t *testing.T, c *localcluster.Cluster, file string, restore func(dir, name string, more ...string) harness.Ended) {
	t.Helper()
	free := filepath.Join(t.TempDir(), "new")
	restore(free, "store-1").Want(t, 2, "era")
	restore(free, "store-1", "--era", "1", "--cluster", "another").Want(t, 1, "foreign cluster")
	restore(free, "store-9", "--era", "1").Want(t, 2, "store-9")
	restore(free, "store-1", "--era", "1", "--bump", "0").Want(t, 1, "bump")
	restore(free, "store-1", "--era", "1", "--bump", "9007199254740991").Want(t, 1, "limit")
	restore(c.Process("store-1").Dir, "store-1", "--era", "1").Want(t, 1, "exists already")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(text)
	flipped[len(flipped)/2] ^= 1
	for what, damaged := range map[string][]byte{"flipped": flipped, "cut": text[:len(text)-7], "empty": nil} {
		path := filepath.Join(t.TempDir(), what)
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		got := seqctl(t, c, "store", "restore", "--from", path, "--cluster", c.ClusterID, "--data-dir", free, "--name", "store-1",
			"--members", "store-1", "--era", "1")
		got.Want(t, 1, "backup is damaged")
	}
	if _, err := os.Stat(free); err == nil {
		t.Error("a refused restore made something")
	}
}

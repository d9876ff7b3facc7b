package storeadmin

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

func TestARestoreGoesOnWithASectionThatARaiseUsedUp(t *testing.T) {
	c := start(t)
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: 32})
	if err != nil {
		t.Fatal(err)
	}
	space := &mapping.Spaces[0]
	const spent = seq.UID(7)
	elsewhere := seq.UID(64)
	for space.SectionOf(elsewhere) == space.SectionOf(spent) {
		elsewhere += 64
	}
	next := func(uid seq.UID) harness.Ended {
		return seqctl(t, c, "next", strconv.FormatUint(uint64(uid), 10), "--timeout", "20s")
	}
	next(elsewhere).Want(t, 0)
	limit := strconv.FormatUint(uint64(seq.MaxSeq), 10)
	seqctl(t, c, "raise", "7", limit).Want(t, 1, "raise too far", "--force")
	seqctl(t, c, "raise", "7", limit, "--force").Want(t, 0, limit)
	seqctl(t, c, "events").Want(t, 0, "uid 7 forced", "anonymous at 127.0.0.1:")
	seqctl(t, c, "store", "backup", "--out", filepath.Join(t.TempDir(), "first")).Want(t, 0, "not signed")
	seqctl(t, c, "events").Want(t, 0, "store backup", "anonymous at 127.0.0.1:", "read from store-")
	for _, p := range c.Processes(localcluster.RoleAlloc) {
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "backup")
	seqctl(t, c, "auth", "key", "--out", key).Want(t, 0)
	seqctl(t, c, "store", "backup", "--out", file, "--sign-key", key).Want(t, 0, "signed and held")
	seqctl(t, c, "store", "check", file, "--sign-key", key).Want(t, 0, " 0 wrong", "is spent", "signed and held")
	if err := c.StopAll(harness.Within(t)); err != nil {
		t.Fatal(err)
	}
	for _, p := range c.Processes(localcluster.RoleStore) {
		if err := os.RemoveAll(p.Dir); err != nil {
			t.Fatal(err)
		}
		seqctl(t, c, "store", "restore", "--from", file, "--sign-key", key, "--cluster", c.ClusterID, "--data-dir", p.Dir, "--name", p.Name,
			"--members", "store-1,store-2,store-3", "--era", "1").Want(t, 0, "era 1", "is spent: 0 numbers left")
	}
	if err := c.StartAll(); err != nil {
		t.Fatal(err)
	}
	harness.Ready(t, c)
	next(spent).Want(t, 1, "2^53-1")
	next(spent+1).Want(t, 1, "2^53-1") // its neighbours end with it
	next(elsewhere).Want(t, 0)
	seqctl(t, c, "status").Want(t, 1, "used up", "OVERFLOW")
}

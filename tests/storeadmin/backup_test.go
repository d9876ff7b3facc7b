package storeadmin

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/backup"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

func TestARestoreIntoANewEraRepeatsNothingThatWasHandedOutAfterTheBackup(t *testing.T) {
	c := start(t)
	l := startLoad(t, c)
	l.flows("at first")
	file := filepath.Join(t.TempDir(), "backup")
	began := l.Clock.Now()
	seqctl(t, c, "store", "backup", "--out", file).Want(t, 0, c.ClusterID, "era 0")
	seqctl(t, c, "store", "backup", "--out", file).Want(t, 1, "exists")
	seqctl(t, c, "store", "check", file).Want(t, 0, " 0 wrong")
	seqctl(t, c, "store", "inspect", file).Want(t, 0, "section", "32")
	l.flows("after the backup")
	l.End()
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
	parked := 0 // counters of the era before
	for _, p := range c.Processes(localcluster.RoleAlloc) {
		files, err := os.ReadDir(p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		parked += len(files)
	}
	if parked == 0 {
		t.Fatal("no allocator parked anything")
	}
	if err := c.StartAll(); err != nil {
		t.Fatal(err)
	}
	harness.Ready(t, c)
	again := startLoad(t, c)
	again.flows("in the new era")
	again.End()
	checkRestored(t, c, l, again, began)
	seqctl(t, c, "store", "status", "-o", "json").Want(t, 0, `"era": 1`)
}

// checkRestored judges a load and the one after a restore from a backup that began in the first.
// Requests of the exact space that were answered before have their numbers; of those after, the
// backup has some, and the others are lost with the disks. Every key goes on above the bump.
func checkRestored(t *testing.T, c *localcluster.Cluster, l, again *load, began time.Duration) {
	t.Helper()
	logs := again.audit(l.onces)
	kept, lost := withoutLost(l.History.Calls(), logs, began)
	if lost == 0 {
		t.Error("the backup has all requests: the restore shows nothing")
	}
	calls := slices.Concat(kept, again.History.Calls())
	sdk, err := client.New(harness.Within(t), client.Config{Addrs: []string{c.GRPC()}})
	if err != nil {
		t.Fatal(err)
	}
	defer sdk.Close()
	now, err := sdk.Current(harness.Within(t), exactSpace, []seq.UID{7})
	if err != nil || now[0].Err != nil || now[0].Seq != backup.DefaultBump {
		t.Errorf("a UID that nothing was asked of stands at %v, %v, want %d", now, err, uint64(backup.DefaultBump))
	}
	for key, log := range logs {
		last := uint64(0)
		for _, got := range log.Found {
			if got.Last < backup.DefaultBump {
				last = max(last, got.Last)
			}
		}
		log.Raised = []uint64{last + backup.DefaultBump}
		logs[key] = log
		r, err := sdk.TakeIdempotent(harness.Within(t), client.Key{Space: key.Space, UID: seq.UID(key.UID)}, 1, client.Request{ID: "in the new era"})
		if err != nil || uint64(r.First) != log.Last+1 {
			t.Errorf("key %v goes on at %d, %v, want %d", key, r.First, err, log.Last+1)
		}
	}
	for key, log := range again.audit(again.onces) { // UIDs that the backup does not know
		log.Raised = []uint64{backup.DefaultBump}
		logs[key] = log
	}
	judged(t, history.CheckExact(calls, logs))
}

// withoutLost has no ids in calls for requests that were answered after the backup began and are
// not in it, and says how many answers are left of those: their numbers are not handed out again.
func withoutLost(calls []history.Call, logs map[history.Key]history.Log, began time.Duration) (kept []history.Call, lost int) {
	type request struct {
		history.Key
		id string
	}
	first := map[request]time.Duration{} // answers
	for _, c := range calls {
		q := request{c.Key, c.ID}
		if end, ok := first[q]; c.Err == "" && (!ok || c.End < end) {
			first[q] = c.End
		}
	}
	for _, c := range calls {
		q := request{c.Key, c.ID}
		got := logs[c.Key].Found[c.ID].First
		if end, ok := first[q]; c.ID != "" && ok && end >= began && (got == 0 || got > backup.DefaultBump) {
			if c.Err != "" || c.End != end {
				continue
			}
			c.ID = ""
			lost++
		}
		kept = append(kept, c)
	}
	return kept, lost
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

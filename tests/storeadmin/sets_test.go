package storeadmin

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/storesvr/backup"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// division is two clusters, the second of which is Set b, and a caller of both.
type division struct {
	t    *testing.T
	all  [2]*localcluster.Cluster
	sdk  *client.Client
	uids []seq.UID // one a section
	last []seq.Seq
	ids  map[snowflake.ID]bool
}

const setSections = 16

func startSets(t *testing.T) *division {
	t.Helper()
	d := &division{t: t, ids: map[snowflake.ID]bool{}}
	var addrs []string
	for i := range d.all {
		d.all[i] = harness.Start(t, func(cfg *localcluster.Config) { cfg.Lease, cfg.Sections, cfg.Allocs = lease, setSections, 2 })
		addrs = append(addrs, d.all[i].Addrs(localcluster.RoleAlloc)...)
	}
	d.ctl("set", "add", "b", "--set-addr", addrs[2]+","+addrs[3]).Want(t, 0)
	var err error
	if d.sdk, err = client.New(harness.Within(t), client.Config{Addrs: addrs, Timeout: harness.Patience}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.sdk.Close() })
	m, _ := d.sdk.Caller().Table().Mapping()
	for id := range seq.SectionID(setSections) {
		for uid := seq.UID(0); ; uid += 1 << seq.BlockBits {
			if m.Spaces[0].SectionOf(uid) == id {
				d.uids = append(d.uids, uid)
				break
			}
		}
	}
	d.last = make([]seq.Seq, setSections)
	return d
}

// ctl asks the root.
func (d *division) ctl(args ...string) harness.Ended {
	d.t.Helper()
	return seqctl(d.t, d.all[0], args...)
}

func (d *division) move(sections, to string) {
	d.t.Helper()
	d.ctl("set", "move", "--sections", sections, "--to", to).Want(d.t, 0)
}

// count takes numbers of sections, which must rise.
func (d *division) count(first, last int) {
	d.t.Helper()
	for range 3 {
		for i := first; i <= last; i++ {
			got, err := d.sdk.Next(harness.Within(d.t), client.Key{UID: d.uids[i]})
			if err != nil || got <= d.last[i] {
				d.t.Fatalf("section %d: %d, %v, after %d", i, got, err, d.last[i])
			}
			d.last[i] = got
		}
	}
}

// generate makes global IDs at each allocator of a Set.
func (d *division) generate(set int) {
	d.t.Helper()
	c, err := client.New(harness.Within(d.t), client.Config{Addrs: d.all[set].Addrs(localcluster.RoleAlloc), Timeout: harness.Patience})
	if err != nil {
		d.t.Fatal(err)
	}
	defer c.Close()
	for range 20 {
		got, err := c.Generate(harness.Within(d.t), "", 10)
		if err != nil {
			d.t.Fatal(err)
		}
		for id := range got.All() {
			if d.ids[id] {
				d.t.Fatalf("global ID %d twice", id)
			}
			d.ids[id] = true
		}
	}
}

// fails takes no number: what is in limbo serves nobody.
func (d *division) fails(i int) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(harness.Within(d.t), time.Second)
	defer cancel()
	if got, err := d.sdk.Next(ctx, client.Key{UID: d.uids[i]}); err == nil {
		d.t.Fatalf("section %d hands out %d before it is settled", i, got)
	}
}

// backup takes a backup of a Set, for restore.
func (d *division) backup(set int) string {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "backup")
	seqctl(d.t, d.all[set], "store", "backup", "--out", file).Want(d.t, 0)
	return file
}

// restore loses all disks of a Set, and makes stores of a new era of the backup.
func (d *division) restore(set int, file string) {
	d.t.Helper()
	c := d.all[set]
	if err := c.StopAll(harness.Within(d.t)); err != nil {
		d.t.Fatal(err)
	}
	for _, p := range c.Processes(localcluster.RoleStore) {
		if err := os.RemoveAll(p.Dir); err != nil {
			d.t.Fatal(err)
		}
		seqctl(d.t, c, "store", "restore", "--from", file, "--cluster", c.ClusterID, "--data-dir", p.Dir, "--name", p.Name,
			"--members", "store-1,store-2,store-3", "--era", "1").Want(d.t, 0, "era 1")
	}
	if err := c.StartAll(); err != nil {
		d.t.Fatal(err)
	}
	for _, p := range c.Processes(localcluster.RoleStore, localcluster.RoleAlloc) { // a router has no numbers of what is in limbo
		if err := c.WaitNode(harness.Within(d.t), p.Node, p.Done(), p.Exit); err != nil {
			d.t.Fatal(err)
		}
	}
}

// After the backup, sections moved to the other Set and back, numbers and global IDs were handed out, and a
// Set asked for worker ids. No number, ID or worker id repeats.
func TestARestoredSetIsSettledWithTheOthers(t *testing.T) {
	for set, name := range []string{"main", "b"} {
		t.Run(name, func(t *testing.T) {
			d := startSets(t)
			d.move("0-7", "b")
			d.count(0, 15)
			file := d.backup(set)
			d.move("8-11", "b")
			d.move("0-3", "main") // now b has 4-11
			d.count(0, 15)
			d.generate(0)
			d.generate(1) // with worker ids of which the backup knows nothing
			d.restore(set, file)

			kept, gone := [2]int{0, 3}, [2]int{4, 11} // what the restored Set had, and the other
			if set == 1 {
				kept, gone = gone, kept
			}
			d.count(gone[0], gone[1])
			d.fails(kept[0])
			d.ctl("set", "settle", "--set", name).Want(t, 0)
			d.count(0, 15)
			for i := kept[0]; i <= kept[1]; i++ {
				if d.last[i] < backup.DefaultBump {
					t.Errorf("section %d goes on at %d, below the bump", i, d.last[i])
				}
			}
			d.generate(1 - set)
			seqctl(t, d.all[set], "store", "windows-over", "--reason", "a test whose callers hold none").Want(t, 0)
			harness.Until(t, "global IDs of the restored Set", func() bool {
				_, err := d.sdk.NextID(harness.Within(t), "")
				return err == nil
			})
			d.generate(set)
			d.generate(1 - set)
			d.move("0-15", name)
			d.count(0, 15)
		})
	}
}

package storeadmin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/storesvr/backup"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// caller asks allocators for numbers of a tag and for IDs, and notes what it got.
type caller struct {
	t    *testing.T
	c    *localcluster.Cluster
	tags map[uint64]bool
	ids  map[uint64]bool
}

// with asks the node at the address.
func (k *caller) with(addr string, do func(pb.SegmentClient, pb.SnowflakeClient) error) error {
	k.t.Helper()
	conn, err := rpc.Dial(addr)
	if err != nil {
		k.t.Fatal(err)
	}
	defer conn.Close()
	return do(pb.NewSegmentClient(conn), pb.NewSnowflakeClient(conn))
}

// take takes numbers of the tag until it gets some: the first of them.
func (k *caller) take() (first uint64) {
	k.t.Helper()
	harness.Until(k.t, "numbers of the tag", func() bool {
		for _, addr := range k.c.Addrs(localcluster.RoleAlloc) { // the owner among them
			err := k.with(addr, func(s pb.SegmentClient, _ pb.SnowflakeClient) error {
				got, err := s.Take(harness.Within(k.t), &pb.SegmentTakeRequest{Tag: "orders", Count: 10})
				if err != nil {
					return err
				}
				for n := got.GetFirst(); n <= got.GetLast(); n++ {
					if k.tags[n] {
						k.t.Errorf("number %d of the tag came twice", n)
					}
					k.tags[n] = true
				}
				first = got.GetFirst()
				return nil
			})
			if err == nil {
				return true
			}
		}
		return false
	})
	return first
}

// gen asks one allocator for an ID.
func (k *caller) gen() (id uint64, err error) {
	k.t.Helper()
	err = k.with(k.c.Addrs(localcluster.RoleAlloc)[0], func(_ pb.SegmentClient, s pb.SnowflakeClient) error {
		got, err := s.Generate(harness.Within(k.t), &pb.SnowflakeGenerateRequest{Count: 1})
		if err != nil {
			return err
		}
		for _, n := range got.GetIds() {
			id = uint64(n)
			if k.ids[id] {
				k.t.Errorf("ID %d came twice", id)
			}
			k.ids[id] = true
		}
		return nil
	})
	return id, err
}

// added are the numbers of keys of spaces that are added while the cluster serves.
type added struct {
	t    *testing.T
	c    *localcluster.Cluster
	last map[string]uint64 // by key
}

// grow adds the spaces, as an operator does after a restore that lost them.
func (a *added) grow() {
	a.t.Helper()
	for _, space := range []string{"room:sections=4", "bills:sections=4,mode=exact"} {
		seqctl(a.t, a.c, "space", "add", space, "--wait").Want(a.t, 0)
	}
}

// take takes a number of each key, above all that it got in any era.
func (a *added) take(when string) {
	a.t.Helper()
	sdk, err := client.New(harness.Within(a.t), client.Config{Addrs: []string{a.c.GRPC()}})
	if err != nil {
		a.t.Fatal(err)
	}
	defer sdk.Close()
	for _, key := range []client.Key{{Space: "room", UID: 42}, client.StringKey("room", "lobby"), {Space: "bills", UID: 42}, client.StringKey("bills", "acme")} {
		name := fmt.Sprint(key)
		harness.Until(a.t, "a number of "+name, func() bool {
			got, err := sdk.Next(harness.Within(a.t), key)
			if err != nil {
				return false
			}
			if uint64(got) <= a.last[name] {
				a.t.Errorf("%s: key %s got %d after %d", when, name, got, a.last[name])
			}
			a.last[name] = uint64(got)
			return true
		})
	}
}

// restoreAll loses every store and makes the stores of a new era from the file.
func restoreAll(t *testing.T, c *localcluster.Cluster, file, era string, more ...string) {
	t.Helper()
	if err := c.StopAll(harness.Within(t)); err != nil {
		t.Fatal(err)
	}
	for _, p := range c.Processes(localcluster.RoleStore) {
		if err := os.RemoveAll(p.Dir); err != nil {
			t.Fatal(err)
		}
		seqctl(t, c, append([]string{"store", "restore", "--from", file, "--cluster", c.ClusterID, "--data-dir", p.Dir,
			"--name", p.Name, "--members", "store-1,store-2,store-3", "--era", era}, more...)...).Want(t, 0, "era "+era)
	}
	if err := c.StartAll(); err != nil {
		t.Fatal(err)
	}
	harness.Ready(t, c)
}

func TestWhatWasFirstUsedAfterTheBackupIsNotRepeatedByARestore(t *testing.T) {
	const window = 20 * time.Second
	c := start(t)
	k := &caller{t: t, c: c, tags: map[uint64]bool{}, ids: map[uint64]bool{}}
	seqctl(t, c, "segment", "add", "orders").Want(t, 0)
	file := filepath.Join(t.TempDir(), "backup")
	seqctl(t, c, "store", "backup", "--out", file).Want(t, 0)
	k.take()
	grown := &added{t: t, c: c, last: map[string]uint64{}}
	grown.grow()
	grown.take("era 0")
	harness.Until(t, "an ID", func() bool { _, err := k.gen(); return err == nil })
	var lent *pb.SnowflakeDelegateReply
	err := k.with(c.Addrs(localcluster.RoleAlloc)[0], func(_ pb.SegmentClient, s pb.SnowflakeClient) (err error) {
		lent, err = s.Delegate(harness.Within(t), &pb.SnowflakeDelegateRequest{Holder: "test", WindowMs: uint64(window.Milliseconds())})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	restoreAll(t, c, file, "1", "--worker-margin", window.String())
	if first := k.take(); first != backup.DefaultBump+1 {
		t.Errorf("the tag begins at %d in the new era, want %d", first, uint64(backup.DefaultBump+1))
	}
	grown.grow()
	grown.take("era 1")
	grown.take("era 1 again")
	var id uint64
	harness.Until(t, "IDs, once the window from before is over", func() bool { id, err = k.gen(); return err == nil })
	layout, err := snowflake.ParseLayout(lent.GetLayout())
	if err != nil {
		t.Fatal(err)
	}
	parts, err := layout.Decode(snowflake.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	if at, err := layout.TimeOf(parts.Tick); err != nil || uint64(at.UnixMilli()) <= lent.GetConfirmedUnixMs() {
		t.Errorf("an ID of %v (%v), in the window of a client that ends at %v", at, err, time.UnixMilli(int64(lent.GetConfirmedUnixMs())))
	}

	// Now that all is known to the backup, and by the margin that a restore has by itself.
	later := filepath.Join(t.TempDir(), "later")
	seqctl(t, c, "store", "backup", "--out", later).Want(t, 0, "era 1")
	restoreAll(t, c, later, "2")
	if first := k.take(); first <= 2<<32 {
		t.Errorf("the tag begins at %d in the third era, want above 2^33", first)
	}
	grown.take("era 2, of a backup that has the spaces")
	if _, err := k.gen(); err == nil {
		t.Error("an ID while windows from before may be in use")
	}
	harness.Until(t, "a healthy cluster's status to say so", func() bool {
		got := seqctl(t, c, "status")
		return got.Code == 0 && strings.Contains(got.Stdout, "no snowflake IDs before")
	})
	seqctl(t, c, "store", "status").Want(t, 0, "windows-over")
	seqctl(t, c, "store", "windows-over").Want(t, 2, "--reason")
	seqctl(t, c, "store", "windows-over", "--reason", "test").Want(t, 0, "store-1: worker ids are kept back for")
	harness.Until(t, "IDs on the operator's word", func() bool { _, err := k.gen(); return err == nil })

	// And the first file again, which knows nothing of the two eras between.
	restoreAll(t, c, file, "3", "--worker-margin", "1s")
	if first := k.take(); first <= 3<<32 {
		t.Errorf("the tag begins at %d in the fourth era, want above 3*2^32", first)
	}
	grown.grow()
	grown.take("era 3, of the first backup")
	harness.Until(t, "IDs in the fourth era", func() bool { _, err := k.gen(); return err == nil })
}

package processes

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// A cluster that the version before has made goes over to this one node by node and back again,
// under load by both versions of the SDK, through the routers and straight at the AllocSvr.
func TestARollingUpgradeUnderLoadLosesAndSkipsNothing(t *testing.T) {
	before, now := harness.Previous(t), harness.Binaries(t)
	log := bigLog(t)
	var bin *harness.Installed
	c := start(t, func(cfg *localcluster.Config) {
		smallSteps(cfg)
		cfg.Spaces = []string{"new:sections=64,step=20", "orders:sections=4,mode=exact,window=1h"}
		harness.AskOnce(cfg)
		bin = harness.Install(t, cfg, before)
	})
	byOld, byNew := startReplayBy(t, c, before), startReplayBy(t, c, now, "--space", "new")
	straight := climb(t, c.Addrs(localcluster.RoleAlloc))
	fed := 0
	feed := func(n int) { // n of the ten parts in all
		part := log[len(log)*fed/10 : len(log)*(fed+n)/10]
		fed += n
		byOld.feed(part)
		byNew.feed(part)
	}
	order := ordering{t: t, c: c, ids: map[string]string{}}
	feed(2)
	order.by(before, "a-1")
	byOld.until("some answered by the version before", func() bool { return taken(t, c) >= uint64(len(log)/5) })
	roles := []localcluster.Role{localcluster.RoleStore, localcluster.RoleAlloc, localcluster.RoleRouter}
	// The order of docs/operations.md: a store is asked by newer nodes before it asks
	// anybody, an allocator before a router.
	for i, role := range roles {
		feed(1)
		bin.Change(c, now, c.Processes(role)...)
		order.by([]string{before, now, before}[i], "b-"+strconv.Itoa(i))
	}
	feed(1)
	slices.Reverse(roles)
	for i, role := range roles {
		feed(1)
		bin.Change(c, before, c.Processes(role)...)
		order.by([]string{now, before, now}[i], "c-"+strconv.Itoa(i))
	}
	feed(10 - fed)
	// Databases that both versions have written.
	bin.Change(c, now, c.Processes(localcluster.RoleStore)...)
	order.by(before, "d-1")
	for _, r := range []*replay{byOld, byNew} {
		got, answers := r.finish()
		last, skipped := check(t, log, answers)
		wantClean(t, log, got, last, skipped)
	}
	if straight.end(); straight.failed.Load() > 0 {
		t.Errorf("%d calls straight at the AllocSvr failed", straight.failed.Load())
	}

	// A backup by the version before is restored by this one.
	order.by(now, "d")
	file := filepath.Join(t.TempDir(), "backup")
	stores := "--stores=" + strings.Join(c.Addrs(localcluster.RoleStore), ",")
	harness.Run(t, commandBy(harness.Within(t), t, before, "seqctl", "store", "backup", stores, "--out", file)).Want(t, 0, c.ClusterID)
	order.by(before, "after the backup")
	if err := c.StopAll(harness.Within(t)); err != nil {
		t.Fatal(err)
	}
	for _, p := range c.Processes(localcluster.RoleStore) {
		if err := os.RemoveAll(p.Dir); err != nil {
			t.Fatal(err)
		}
		run(t, "seqctl", "store", "restore", "--from", file, "--cluster", c.ClusterID, "--data-dir", p.Dir, "--name", p.Name,
			"--members", strings.Join(c.StoreNames(), ","), "--era", "1").Want(t, 0, "era 1")
	}
	for _, p := range c.Processes() {
		bin.Put(p.Name, filepath.Join(now, harness.Program(p.Role)))
	}
	if err := c.StartAll(); err != nil {
		t.Fatal(err)
	}
	harness.Ready(t, c)
	delete(order.ids, "after the backup")
	order.last += 1 << 30
	order.by(now, "e")
}

// ordering takes numbers of one key of an exact space: an id keeps its numbers, whichever version
// is asked, and no number is left out.
type ordering struct {
	t    *testing.T
	c    *localcluster.Cluster
	ids  map[string]string // answers by id
	last uint64            // no new number may be below
}

func (o *ordering) by(bin, id string) {
	o.t.Helper()
	ask := func(id string) string {
		ended := harness.Run(o.t, commandBy(harness.Within(o.t), o.t, bin, "seqctl", "next", "7", "--space", "orders", "--request-id", id, "--addr", o.c.GRPC(),
			"--timeout", "60s", "-o", "json"))
		ended.Want(o.t, 0, `"first"`)
		_, first, _ := strings.Cut(ended.Stdout, `"first":`)
		first, _, _ = strings.Cut(first, ",")
		return strings.TrimSpace(first)
	}
	got := ask(id)
	n, err := strconv.ParseUint(got, 10, 64)
	if err != nil || n != o.last+1 && (o.last < 1<<30 || n <= o.last) {
		o.t.Errorf("request %s got %s (%v) after %d", id, got, err, o.last)
	}
	o.last, o.ids[id] = n, got
	for _, id := range []string{"a-1", id} {
		if again := ask(id); again != o.ids[id] {
			o.t.Errorf("request %s got %s, and %s before", id, again, o.ids[id])
		}
	}
}

// Two clusters of one store and two AllocSvr, one of which goes back to the version before.
func TestADowngradeAfterSetsWereUsedIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	before, now := harness.Previous(t), harness.Binaries(t)
	var all [2]*localcluster.Cluster
	var bins [2]*harness.Installed
	for i := range all {
		all[i] = harness.Start(t, func(cfg *localcluster.Config) {
			cfg.Stores, cfg.Allocs, cfg.Sections, cfg.Lease = 1, 2, setSections, lease/2
			bins[i] = harness.Install(t, cfg, now)
		})
	}
	c, bin := all[0], bins[0]
	store, allocs := c.Processes(localcluster.RoleStore)[0], c.Processes(localcluster.RoleAlloc)
	conns := dialled{}
	t.Cleanup(func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	})
	root := &setadmin.Root{Set: setadmin.NewSet(sets.RootName, c.Addrs(localcluster.RoleAlloc), conns)}
	add := func() error {
		_, err := root.Add(harness.Within(t), setadmin.NewSet("b", all[1].Addrs(localcluster.RoleAlloc), conns), c.Addrs(localcluster.RoleAlloc))
		return err
	}

	// While an older node lives, no Set is added, and all can go back.
	bin.Change(c, before, allocs[1])
	if err := add(); !errors.Is(err, seq.ErrProtocol) || !strings.Contains(err.Error(), allocs[1].Name) || !strings.Contains(err.Error(), "speaks 2") {
		t.Fatalf("set add beside an older node: %v", err)
	}
	bin.Change(c, before, store)
	bin.Change(c, now, store)
	bin.Change(c, now, allocs[1])
	harness.Until(t, "set add", func() bool {
		err := add()
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	move(t, root, conns, "b", sets.Range{First: 0, Sections: 8})
	sdk, err := client.New(harness.Within(t), client.Config{Addrs: c.Addrs(localcluster.RoleAlloc), Timeout: harness.Patience})
	if err != nil {
		t.Fatal(err)
	}
	defer sdk.Close()
	const uids = 40 // of both Sets
	last := map[seq.UID]seq.Seq{}
	take := func() {
		t.Helper()
		for uid := range seq.UID(uids) {
			first, end, err := sdk.NextN(harness.Within(t), client.Key{UID: uid << 6}, 5000)
			if err != nil || first <= last[uid] {
				t.Fatalf("uid %d got %d after %d: %v", uid<<6, first, last[uid], err)
			}
			last[uid] = end
		}
	}
	take()

	// An older AllocSvr gets no lease, and the log and the status name it and both numbers.
	p := allocs[1]
	if err := p.Stop(harness.Within(t)); err != nil {
		t.Fatal(err)
	}
	bin.Put(p.Name, filepath.Join(before, "allocsvr"))
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	for log, words := range map[string]string{p.Log: "speaks 2, cluster", store.Log: "speaks=2 required=3"} {
		harness.Until(t, "the refusal in "+log, func() bool {
			text, err := os.ReadFile(log)
			return err == nil && strings.Contains(string(text), words) && strings.Contains(string(text), p.Name)
		})
	}
	harness.Until(t, "the refusal in the status", func() bool {
		status := run(t, "seqctl", "status", "--addr", allocs[0].Addr).Stdout
		return strings.Contains(status, p.Name) && strings.Contains(status, "speaks 2") && strings.Contains(status, "requires 3")
	})
	take()
	if err := p.Stop(harness.Within(t)); err != nil {
		t.Fatal(err)
	}

	// An older StoreSvr does not open the database, and leaves it as it is.
	if err := store.Stop(harness.Within(t)); err != nil {
		t.Fatal(err)
	}
	sum := func() [sha256.Size]byte {
		content, err := os.ReadFile(filepath.Join(store.Dir, "store.db"))
		if err != nil {
			t.Fatal(err)
		}
		return sha256.Sum256(content)
	}
	had := sum()
	refused := harness.Run(t, commandBy(harness.Within(t), t, before, "storesvr", "serve", "--data-dir", store.Dir, "--listen", "127.0.0.1:0", "--admin", ""))
	if refused.Code == 0 || !strings.Contains(refused.Stderr+refused.Stdout, "format") || sum() != had {
		t.Errorf("an older StoreSvr: exit %d, database changed: %v: %s%s", refused.Code, sum() != had, refused.Stdout, refused.Stderr)
	}
	if err := store.Start(); err != nil {
		t.Fatal(err)
	}
	bin.Change(c, now, p)
	take()
}

// Sets that the previous version made serve during the whole upgrade. The first store of this version
// refuses builds of protocol 1. Builds of protocol 2 are refused once no node speaks it any more.
func TestSetsOfTheVersionBeforeComeToRequireTheirProtocol(t *testing.T) {
	before, now := harness.Previous(t), harness.Binaries(t)
	var all [2]*localcluster.Cluster
	var bins [2]*harness.Installed
	for i := range all {
		all[i] = harness.Start(t, func(cfg *localcluster.Config) {
			cfg.Stores, cfg.Allocs, cfg.Sections, cfg.Lease = 1, 1, setSections, lease/2
			harness.AskOnce(cfg)
			bins[i] = harness.Install(t, cfg, before)
		})
	}
	old := func(args ...string) harness.Ended {
		return harness.Run(t, commandBy(harness.Within(t), t, before, "seqctl", append(args, "--addr", all[0].Addrs(localcluster.RoleAlloc)[0])...))
	}
	old("set", "add", "b", "--set-addr", all[1].Addrs(localcluster.RoleAlloc)[0]).Want(t, 0)
	old("set", "move", "--sections", "0-7", "--to", "b").Want(t, 0)
	callers := climb(t, []string{all[0].GRPC()}, func(err error) bool { return errors.Is(err, seq.ErrNoQuorum) }) // while the only store restarts
	for i, c := range all {
		required := func(want int) {
			t.Helper()
			harness.Until(t, "protocol "+strconv.Itoa(want)+" is required", func() bool {
				status := run(t, "seqctl", "store", "status", "--stores", strings.Join(c.Addrs(localcluster.RoleStore), ","), "-o", "json").Stdout
				return strings.Contains(status, `"required_protocol": `+strconv.Itoa(want))
			})
		}
		bins[i].Change(c, now, c.Processes(localcluster.RoleStore)...)
		required(2)
		bins[i].Change(c, now, c.Processes(localcluster.RoleAlloc)...)
		required(3)
	}
	callers.end()
}

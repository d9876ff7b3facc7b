package matrix

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// lease is so long that no process loses one for want of a processor, and short enough to wait for.
const lease = 2 * time.Second

// site is a cluster of real processes, a caller of it, and all kinds of numbers.
type site struct {
	*testing.T
	c     *localcluster.Cluster
	etcd  *localcluster.Etcd // nil if the registers are in stores
	bin   *harness.Installed // of c, where it begins with another build than this one
	from  string             // the folder of that build; empty if c begins with this build
	sdk   *client.Client
	kinds []*kind
	taken int
}

func newSite(t *testing.T, etcd bool) *site {
	t.Helper()
	return newSiteOf(t, etcd, "")
}

// newSiteOf starts the cluster with the binaries of a folder, or if from is empty with this build.
func newSiteOf(t *testing.T, etcd bool, from string) *site {
	t.Helper()
	t.Parallel() // they wait most of the time
	s := &site{T: t, from: from}
	if etcd {
		s.startEtcd()
	}
	s.c = s.start("matrix")
	s.seqctl("namespace", "add", namespace, "--layout", "twitter").Want(t, 0)
	s.seqctl("segment", "add", "plain").Want(t, 0)
	s.seqctl("number", "add", "bill", "--template", "B-{seq:12}").Want(t, 0)
	s.kinds = kindsOf(!etcd, from == "")
	s.dial()
	return s
}

// start runs a cluster of two AllocSvr with a space of each mode.
func (s *site) start(id string) *localcluster.Cluster {
	s.Helper()
	return harness.Start(s, func(cfg *localcluster.Config) {
		cfg.Lease, cfg.Sections, cfg.Step, cfg.Allocs, cfg.ClusterID = lease, 8, 100, 2, id
		cfg.Spaces = []string{strictSpace + ":mode=strict,sections=4", looseSpace + ":mode=unique-only,sections=4"}
		tickets := ""
		if s.from == "" { // the version before knows none
			tickets = fmt.Sprint(",tickets=", ticketLife)
			cfg.Spaces = append(cfg.Spaces, inboxSpace+":sections=4"+tickets)
		}
		if s.etcd != nil {
			cfg.Etcd = etcdclient.Flags{Endpoints: s.etcd.Endpoints(), Prefix: "/" + id, MinVersion: "3.4.0"}
		} else {
			cfg.Spaces = append(cfg.Spaces, exactSpace+":mode=exact,window=1h,sections=4"+tickets)
		}
		if s.from != "" {
			s.bin = harness.Install(s, cfg, s.from)
		}
	})
}

func (s *site) startEtcd() {
	s.Helper()
	if _, err := exec.LookPath("etcdctl"); err != nil {
		s.Skip(err)
	}
	var err error
	s.etcd, err = localcluster.StartEtcd(localcluster.EtcdConfig{Dir: filepath.Join(s.TempDir(), "etcd"), Members: 1})
	if err != nil {
		s.Skip(err)
	}
	s.Cleanup(s.etcd.Close)
	s.awaitEtcd()
}

func (s *site) awaitEtcd() {
	s.Helper()
	harness.Until(s, "etcd listens", func() bool {
		conn, err := net.Dial("tcp", s.etcd.Endpoints()[0])
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
}

// dial makes the caller, which knows routers and AllocSvr.
func (s *site) dial() {
	s.Helper()
	var err error
	addrs := append([]string{s.c.GRPC()}, s.c.Addrs(localcluster.RoleAlloc)...)
	if s.sdk, err = client.New(harness.Within(s), client.Config{Addrs: addrs, AllowUnordered: true, Lazy: true}); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = s.sdk.Close() })
}

func (s *site) seqctl(args ...string) harness.Ended {
	s.Helper()
	began := time.Now()
	defer func() {
		if took := time.Since(began); took > 5*time.Second {
			s.Logf("seqctl %q took %v", args, took)
		}
	}()
	return harness.Run(s, harness.Command(harness.Within(s), s, []string{"SEQ_ADDR=" + s.c.GRPC()}, "seqctl", args...))
}

// store runs a verb on the registers of a cluster.
func (s *site) store(c *localcluster.Cluster, verb string, args ...string) harness.Ended {
	s.Helper()
	args = append([]string{"store", verb}, args...)
	if s.etcd != nil {
		return s.seqctl(append(args, c.Layout.Etcd.Arguments()...)...)
	}
	return s.seqctl(append(args, "--addr", c.GRPC(), "--stores", strings.Join(c.Addrs(localcluster.RoleStore), ","))...)
}

// backup backs a cluster up into a file.
func (s *site) backup(c *localcluster.Cluster) (file string) {
	s.Helper()
	file = filepath.Join(s.TempDir(), "backup")
	s.store(c, "backup", "--out", file).Want(s, 0)
	return file
}

// take takes one number of a kind, by as many attempts as it needs.
func (s *site) take(t *testing.T, k *kind) {
	t.Helper()
	s.taken++
	began := time.Now()
	defer func() {
		if took := time.Since(began); took > 5*time.Second {
			t.Logf("a number of %s took %v", k.name, took)
		}
	}()
	request := fmt.Sprint("request-", s.taken)
	ctx := harness.Within(t)
	for {
		attempt, cancel := context.WithTimeout(ctx, 15*time.Second)
		g, err := k.take(attempt, s.sdk, request)
		cancel()
		if err == nil {
			if broken := k.check(g); broken != nil {
				t.Errorf("%s: %v", k.name, broken)
			}
			return
		}
		if errors.Is(err, errMark) || ctx.Err() != nil {
			t.Fatalf("%s: no number: %v", k.name, err)
		}
	}
}

// after is the event of a subtest: it makes it happen, and then each kind keeps its promises.
func (s *site) after(event string, happen func(t *testing.T)) {
	s.Helper()
	if s.Failed() {
		return
	}
	s.Run(event, func(t *testing.T) {
		happen(t)
		for range 3 {
			for _, k := range s.kinds {
				s.take(t, k)
			}
		}
	})
}

func (s *site) allocs() []*localcluster.Process { return s.c.Processes(localcluster.RoleAlloc) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// common are the events that both engines have, in their order.
func (s *site) common() {
	s.after("first-binding", func(*testing.T) {})
	s.after("drain", func(t *testing.T) { s.seqctl("drain", "alloc-1", "--wait").Want(t, 0) })
	s.after("hand-over", func(t *testing.T) {
		s.seqctl("undrain", "alloc-1").Want(t, 0)
		s.seqctl("drain", "alloc-2", "--wait").Want(t, 0)
		s.seqctl("undrain", "alloc-2", "--wait").Want(t, 0)
	})
	s.after("restart", func(t *testing.T) {
		for _, p := range s.c.Processes() {
			must(t, p.Restart(harness.Within(t)))
			harness.Ready(t, s.c)
		}
	})
	s.after("takeover", func(t *testing.T) {
		p := s.allocs()[0]
		must(t, p.Kill())
		for _, k := range s.kinds {
			s.take(t, k)
		}
		must(t, p.Start())
		harness.Ready(t, s.c)
	})
	s.after("kill-all", func(t *testing.T) {
		s.c.KillAll()
		must(t, s.c.StartAll())
		harness.Ready(t, s.c)
	})
	s.after("space-added", func(t *testing.T) {
		if s.etcd != nil {
			s.seqctl("space", "add", "room:sections=4").Want(t, 1, "bad argument", "etcd")
			return
		}
		s.addSpaces(t, "room")
		s.kinds = append(s.kinds, added("room", "of a space that was added")...)
		s.kinds = append(s.kinds, watch("watch of a space that was added", client.Key{Space: "room", UID: 44}))
	})
	s.after("rehash", func(t *testing.T) {
		for _, space := range []string{seq.DefaultSpace, inboxSpace} {
			s.seqctl("space", "rehash", space, "--key-hash", "sha256-64").Want(t, 0)
		}
		for _, p := range s.allocs() {
			must(t, p.Restart(harness.Within(t)))
			harness.Ready(t, s.c)
		}
	})
	s.after("retire", s.retire)
	var file string
	s.after("backup", func(*testing.T) { file = s.backup(s.c) })
	s.after("after-the-backup", func(t *testing.T) {
		s.seqctl("segment", "add", "late").Want(t, 0)
		s.kinds = append(s.kinds, tag("late"))
		if s.etcd == nil {
			s.addSpaces(t, "late")
			s.kinds = append(s.kinds, added("late", "of a space that the backup lacks")...)
		}
	})
	s.after("restore", func(t *testing.T) {
		s.restore(t, s.c, file)
		harness.Ready(t, s.c)
		s.seqctl("segment", "add", "late").Want(t, 0)
		if s.etcd == nil {
			s.addSpaces(t, "late")
		}
	})
}

// addSpaces adds an ordinary and an exact space.
func (s *site) addSpaces(t *testing.T, name string) {
	t.Helper()
	s.seqctl("space", "add", fmt.Sprint(name, ":sections=4,tickets=", ticketLife), "--wait").Want(t, 0)
	s.seqctl("space", "add", fmt.Sprint(name, "-exact:mode=exact,window=1h,sections=4,tickets=", ticketLife), "--wait").Want(t, 0)
}

// added returns the kinds of the spaces that addSpaces made.
func added(name, what string) []*kind {
	return []*kind{
		of("ordinary "+what, client.Key{Space: name, UID: 42}, false),
		of("key "+what, client.StringKey(name, "a"), false),
		of("exact "+what, client.Key{Space: name + "-exact", UID: 42}, true),
		of("exact-key "+what, client.StringKey(name+"-exact", "a"), true),
		ticket("ticket "+what, client.Key{Space: name, UID: 43}, false),
		ticket("exact-ticket "+what, client.Key{Space: name + "-exact", UID: 43}, true),
	}
}

// retire retires what can be retired, and undoes it.
func (s *site) retire(t *testing.T) {
	verbs := [][]string{{"segment", "retire", "plain"}, {"segment", "retire", "bill"}, {"namespace", "retire", namespace}}
	for _, verb := range verbs {
		s.seqctl(verb...).Want(t, 0)
	}
	for _, k := range s.kinds {
		switch k.name {
		case "tag", "number", "worker":
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			g, err := k.take(ctx, s.sdk, "")
			cancel()
			if !errors.Is(err, seq.ErrRetired) {
				t.Errorf("%s, once it was answered that it is retired: got %v, %v", k.name, g, err)
			}
		}
	}
	for _, verb := range verbs {
		s.seqctl(append(verb, "--undo")...).Want(t, 0)
	}
}

// onStores are the events that clusters on StoreSvr alone have.
func (s *site) onStores() {
	var fresh *localcluster.Process
	add := func(t *testing.T) {
		t.Helper()
		var err error
		fresh, err = s.c.AddStore()
		must(t, err)
		must(t, fresh.Start())
		must(t, fresh.WaitListening(harness.Within(t)))
	}
	s.after("store-replaced", func(t *testing.T) {
		add(t)
		must(t, s.c.Process("store-3").Kill())
		s.store(s.c, "replace", "--dead", "store-3", "--new", fresh.Addr).Want(t, 0)
		must(t, s.c.Process("store-1").Kill()) // the new store and the other one are the quorum
		for _, k := range s.kinds {
			s.take(t, k)
		}
		must(t, s.c.Process("store-1").Start())
	})
	s.after("store-added", func(t *testing.T) {
		add(t)
		s.store(s.c, "add", fresh.Addr).Want(t, 0, "N=4")
	})
	s.after("store-removed", func(t *testing.T) { s.store(s.c, "remove", "store-2").Want(t, 0) })
	s.after("quorum-lost", func(t *testing.T) {
		must(t, s.c.Process("store-1").Kill())
		must(t, fresh.Kill())
		s.refused(t)
		must(t, s.c.Process("store-1").Start())
		must(t, fresh.Start())
	})
}

// restore loses all disks and makes the disks of a new era, whose numbers are lifted.
func (s *site) restore(t *testing.T, c *localcluster.Cluster, file string) {
	t.Helper()
	must(t, c.StopAll(harness.Within(t)))
	args := []string{"store", "restore", "--from", file, "--cluster", c.ClusterID, "--era", "1", "--worker-margin", "1s"}
	if s.etcd != nil {
		del := exec.Command("etcdctl", "--endpoints", s.etcd.Endpoints()[0], "del", "--prefix", c.Layout.Etcd.Prefix+"/")
		del.Env = append(os.Environ(), "ETCDCTL_API=3")
		if out, err := del.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		s.seqctl(append(args, c.Layout.Etcd.Arguments()...)...).Want(t, 0)
	}
	for _, p := range c.Processes(localcluster.RoleStore) {
		must(t, os.RemoveAll(p.Dir))
		s.seqctl(append(args, "--data-dir", p.Dir, "--name", p.Name, "--members", "store-1,store-2,store-3")...).Want(t, 0)
	}
	must(t, c.StartAll())
	for _, p := range c.Processes(localcluster.RoleStore, localcluster.RoleAlloc) { // a router waits for what is settled
		must(t, c.WaitNode(harness.Within(t), p.Node, p.Done(), p.Exit))
	}
	for _, k := range s.kinds {
		k.lifted = true
	}
}

// refused waits until each kind gets an error that says so. Numbers of a unique-only space go on.
func (s *site) refused(t *testing.T) {
	t.Helper()
	for _, k := range s.kinds {
		if k.name == "unique-only" {
			s.take(t, k)
			continue
		}
		request := 0
		harness.Until(t, k.name+" is refused", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			request++
			g, err := k.take(ctx, s.sdk, fmt.Sprint("lost-", request))
			if err == nil {
				if broken := k.check(g); broken != nil {
					t.Errorf("%s: %v", k.name, broken)
				}
				return false
			}
			if errors.Is(err, errMark) {
				t.Errorf("%s: %v", k.name, err)
			}
			// The request may be carried out once the stores are back, and takes its number then.
			k.lifted = true
			if !errors.Is(err, seq.ErrNoQuorum) && request > 3 {
				t.Logf("%s: refused with %v", k.name, err)
			}
			return errors.Is(err, seq.ErrNoQuorum)
		})
	}
}

// onEtcd are the events that clusters on etcd alone have.
func (s *site) onEtcd() {
	s.after("quorum-lost", func(t *testing.T) {
		member := s.etcd.Processes()[0]
		must(t, member.Kill())
		s.refused(t)
		must(t, member.Start())
	})
}

// withSets runs the events of a cluster that is divided among Sets. The sections belong to the ordinary,
// the strict, the unique-only, the inbox and the exact space, in this order.
func (s *site) withSets(other *localcluster.Cluster) {
	set := strings.Join(other.Addrs(localcluster.RoleAlloc), ",")
	s.after("set-added", func(t *testing.T) { s.seqctl("set", "add", "b", "--set-addr", set).Want(t, 0) })
	s.after("set-moved", func(t *testing.T) {
		if s.etcd == nil {
			s.seqctl("set", "move", "--sections", "20-23", "--to", "b").Want(t, 1, "exact")
		}
		s.seqctl("set", "move", "--sections", "0-19", "--to", "b").Want(t, 0)
		for _, k := range s.kinds {
			s.take(t, k)
		}
		s.seqctl("set", "move", "--sections", "0-3", "--to", "main").Want(t, 0)
	})
	s.after("set-settled", func(t *testing.T) {
		file := s.backup(other)
		for _, k := range s.kinds {
			s.take(t, k)
		}
		s.seqctl("set", "move", "--sections", "4-5", "--to", "main").Want(t, 0)
		s.seqctl("set", "move", "--sections", "16-17", "--to", "main").Want(t, 0)
		s.restore(t, other, file)
		s.seqctl("set", "settle", "--set", "b").Want(t, 0)
	})
}

func TestEveryKindOfNumberThroughEveryEventOfSets(t *testing.T) {
	s := newSite(t, false)
	s.withSets(s.start("matrix-b"))
}

func TestEveryKindOfNumberThroughEveryEventOfSetsOnEtcd(t *testing.T) {
	s := newSite(t, true)
	s.withSets(s.start("matrix-b"))
}

// versions are a rolling upgrade from the version before, and back.
func (s *site) versions() {
	all := []localcluster.Role{localcluster.RoleStore, localcluster.RoleAlloc, localcluster.RoleRouter}
	roll := func(t *testing.T, to string) {
		for _, role := range all {
			s.bin.Change(s.c, to, s.c.Processes(role)...)
			for _, k := range s.kinds { // while the cluster is mixed
				s.take(t, k)
			}
		}
	}
	s.after("upgrade", func(t *testing.T) { roll(t, harness.Binaries(t)) })
	slices.Reverse(all)
	s.after("downgrade", func(t *testing.T) { roll(t, s.from) })
}

func TestEveryKindOfNumberThroughAnUpgradeAndBackOnStores(t *testing.T) {
	newSiteOf(t, false, harness.Previous(t)).versions()
}

func TestEveryKindOfNumberThroughAnUpgradeAndBackOnEtcd(t *testing.T) {
	newSiteOf(t, true, harness.Previous(t)).versions()
}

func TestEveryKindOfNumberThroughEveryEventOnStores(t *testing.T) {
	s := newSite(t, false)
	s.common()
	s.onStores()
}

func TestEveryKindOfNumberThroughEveryEventOnEtcd(t *testing.T) {
	s := newSite(t, true)
	s.common()
	s.onEtcd()
}

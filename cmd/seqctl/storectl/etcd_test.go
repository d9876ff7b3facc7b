package storectl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/storesvr/backup"
	"github.com/seqsvr/seqsvr/tests/kit/etcdtest"
)

// patience is far more than a start takes.
const patience = 90 * time.Second

func TestVerbsOfStoresAreRefusedOnEtcd(t *testing.T) {
	for line, want := range map[string]string{
		"replace --dead a --new b:1":  "etcdctl member",
		"add a:1":                     "etcdctl member",
		"remove a":                    "etcdctl member",
		"abort":                       "etcdctl member",
		"status --stores a:1":         "--stores and --etcd",
		"backup --stores a:1 --out x": "--stores and --etcd",
		"restore --cluster c":         "--era N",
		"restore --cluster c --era 1 --data-dir d":               "--data-dir",
		"restore --cluster c --era 1 --name d":                   "--name",
		"restore --cluster c --era 1 --members d":                "--members",
		"status --etcd-ca /no/ca":                                "/no/ca",
		"windows-over":                                           "--reason",
		"restore --cluster c --era 1 --etcd-password-file /no/p": "--etcd-password-file",
	} {
		_, err := call(t, append(strings.Fields(line), "--etcd", "127.0.0.1:1")...)
		if !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a usage error with %q", line, err, want)
		}
	}
	for _, line := range []string{"status", "backup --out " + filepath.Join(t.TempDir(), "b"), "restore --cluster c --era 1", "windows-over --reason x --timeout 300ms"} {
		_, err := call(t, append(strings.Fields(line), "--etcd", "127.0.0.1:1")...)
		if err == nil || errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("%s: got %v, want an error with the address", line, err)
		}
	}
}

func TestANewEraOnEtcdBeginsAboveTheBumpAndTheFloors(t *testing.T) {
	section, tag := seq.SectionRegister(0), seq.TagRegister("orders")
	c := etcdstore.Contents{Cluster: "c1", UUID: "u1", Mapping: seq.Mapping{Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: 1, Step: 10, MaxStep: 10, MaxJump: 10}}},
		Sessions: []etcdstore.LiveSession{{Lease: 20 * time.Second}}}
	var err error
	if c.Mapping, err = seq.NewMapping(c.Mapping.Spaces...); err != nil {
		t.Fatal(err)
	}
	for _, r := range append(seq.FixedRegisters(), section, tag) {
		c.States = append(c.States, quorum.RegisterState{Register: r})
	}
	c.States[len(c.States)-2].Max, c.States[len(c.States)-1].Max = 700, 40
	b, err := beginning(backup.Restore{Cluster: "c1", Era: 2, Bump: 1000, WorkerMargin: time.Hour}, manifestOf(c), c.States)
	if err != nil {
		t.Fatal(err)
	}
	got := map[seq.Register]uint64{}
	for _, st := range b.States {
		got[st.Register] = st.Max
	}
	if got[section] != 700+2*1000 || got[tag] != 40+2*1000 || len(got) != len(c.States) {
		t.Errorf("two eras later: %v", got)
	}
	if f := b.Floors; f.Tag != 2*1000 || f.Worker < uint64(time.Now().Add(59*time.Minute).UnixMilli()) || b.LeaseBound != 20*time.Second {
		t.Errorf("floors %+v, leases of %v", f, b.LeaseBound)
	}
}

// site is an etcd with a cluster of the id c1, and callers of it.
type site struct {
	*testing.T
	etcd   *etcdtest.Cluster
	prefix string
	last   map[seq.UID]seq.Seq
}

func newSite(t *testing.T) *site {
	t.Helper()
	if testing.Short() {
		t.Skip("runs etcd")
	}
	s := &site{T: t, etcd: etcdtest.Start(t, 1), prefix: "/seqsvr", last: map[seq.UID]seq.Seq{}}
	err := etcdstore.Init(t.Context(), s.etcd.Dial(), etcdstore.InitConfig{Prefix: s.prefix, Cluster: "c1",
		Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: 16, Step: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// store is a verb on it.
func (s *site) store(line string) (string, error) {
	s.Helper()
	return call(s.T, append(strings.Fields(line), "--etcd", s.etcd.Endpoints()[0], "--etcd-prefix", s.prefix, "--etcd-min-version", "3.4.0")...)
}

func (s *site) must(line string) string {
	s.Helper()
	out, err := s.store(line)
	if err != nil {
		s.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}

// alloc runs an AllocSvr until stop, which gives what it ended with.
func (s *site) alloc(name string) (take func(), stop func() error) {
	s.Helper()
	cfg := allocsvr.DefaultConfig()
	cfg.Name, cfg.Listen, cfg.Lease, cfg.Logger = name, "127.0.0.1:0", time.Second, slog.New(slog.DiscardHandler)
	cfg.Etcd = allocsvr.Etcd{Config: etcdclient.Config{Endpoints: s.etcd.Endpoints()}, Prefix: s.prefix, Requirement: etcdclient.Requirement{MinVersion: "3.4.0"}}
	server, err := allocsvr.New(cfg)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	stop = func() error {
		cancel()
		err := <-ended
		ended <- err
		return err
	}
	s.Cleanup(func() { _ = stop() })
	c, err := client.New(s.Context(), client.Config{Addrs: []string{server.Addr()}, Lazy: true})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = c.Close() })
	return func() { s.Helper(); s.take(c) }, stop
}

// take has every UID get a number above all that it had.
func (s *site) take(c *client.Client) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	for i := range seq.UID(40) {
		uid := 64 * i
		for {
			n, err := c.Next(ctx, client.Key{UID: uid})
			if err == nil {
				if n <= s.last[uid] {
					s.Fatalf("uid %d got %d after %d", uid, n, s.last[uid])
				}
				s.last[uid] = n
				break
			}
			if ctx.Err() != nil {
				s.Fatalf("no number: %v", err)
			}
		}
	}
}

// rewind puts etcd back to a snapshot as the same etcd cluster.
func (s *site) rewind(saved string) {
	s.Helper()
	m := s.etcd.Members[0]
	m.Kill()
	if err := os.RemoveAll(m.Dir); err != nil {
		s.Fatal(err)
	}
	s.etcd.Ctl(append([]string{"snapshot", "restore", saved, "--data-dir", m.Dir}, m.Identity()...)...)
	m.Start()
	s.etcd.AwaitLeader()
}

func TestAfterASnapshotWasRestoredANewEraRepeatsNoNumber(t *testing.T) {
	s := newSite(t)
	take, stop := s.alloc("a")
	take()
	saved := filepath.Join(t.TempDir(), "snapshot")
	s.etcd.Ctl("snapshot", "save", saved)
	for range 300 { // beyond the ceilings that the snapshot has
		take()
	}
	s.rewind(saved)
	until(t, "the poison", func() error {
		if _, err := s.store("status"); !errors.Is(err, etcdstore.ErrRestored) {
			return fmt.Errorf("status says %w", err)
		}
		return nil
	})
	_ = stop() // it could not save anything
	if _, err := s.store("backup --out " + filepath.Join(t.TempDir(), "b")); !errors.Is(err, etcdstore.ErrRestored) {
		t.Errorf("a backup of it: %v, want %v", err, etcdstore.ErrRestored)
	}
	if _, err := s.store("restore --era 1 --cluster other"); !errors.Is(err, seq.ErrForeignCluster) {
		t.Errorf("of another cluster: %v", err)
	}
	if out := s.must("restore --era 1 --cluster c1"); !strings.Contains(out, "cluster c1, era 1") {
		t.Errorf("restore says %s", out)
	}
	if _, err := s.store("restore --era 1 --cluster c1"); !errors.Is(err, backup.ErrEra) || !errors.Is(err, daemon.ErrUsage) {
		t.Errorf("the same era again: %v, want %v", err, backup.ErrEra)
	}
	take, stop = s.alloc("a")
	take()
	if out := s.must("status"); !strings.Contains(out, "HEALTHY") || !strings.Contains(out, "era 1") || !strings.Contains(out, "windows-over") {
		t.Errorf("status says %s", out)
	}
	s.must("windows-over --reason test")
	take()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestABackupOfEtcdIsRestoredOnEtcdAndOnStoreSvr(t *testing.T) {
	s := newSite(t)
	take, stop := s.alloc("a")
	take()
	file := filepath.Join(t.TempDir(), "backup")
	registers := 16 + len(seq.FixedRegisters())
	if out := s.must("backup --out " + file); !strings.Contains(out, fmt.Sprint(registers, " registers in 16 sections, from etcd")) {
		t.Errorf("backup says %s", out)
	}
	take()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if out, err := call(t, "check", file); err != nil || !strings.Contains(out, fmt.Sprint(registers, " registers checked, 0 wrong")) {
		t.Errorf("check: %v, %s", err, out)
	}
	if _, err := s.store("restore --from " + file + " --era 1 --cluster c1"); !errors.Is(err, etcdstore.ErrInitialized) || !strings.Contains(err.Error(), "without --from") {
		t.Errorf("over the cluster: %v, want %v", err, etcdstore.ErrInitialized)
	}
	s.prefix = "/again"
	s.must("restore --from " + file + " --era 1 --cluster c1")
	take, stop = s.alloc("a")
	take()
	if err := stop(); err != nil {
		t.Error(err)
	}
	out, err := call(t, "restore", "--from", file, "--era", "1", "--cluster", "c1", "--data-dir", filepath.Join(t.TempDir(), "store"), "--name", "s", "--members", "s", "-o", "json")
	var made contents
	if err == nil {
		err = json.Unmarshal([]byte(out), &made)
	}
	if err != nil || made.Era != 1 || made.Registers != registers {
		t.Errorf("on StoreSvr: %v, %s", err, out)
	}
}

func TestABackupOfStoreSvrIsRestoredOnEtcdButNotItsExactSpaces(t *testing.T) {
	s := newSite(t)
	for name, spaces := range map[string][]seq.Space{
		"plain": {{Name: seq.DefaultSpace, Sections: 8}},
		"exact": {{Name: seq.DefaultSpace, Sections: 8}, {Name: "pts", Sections: 4, Mode: seq.Exact}},
	} {
		dir, file := filepath.Join(t.TempDir(), name), filepath.Join(t.TempDir(), "backup")
		if err := storesvr.Init(storesvr.InitConfig{DataDir: dir, ClusterID: "c2", Name: "a", MemberNames: []string{"a"}, Spaces: spaces}); err != nil {
			t.Fatal(err)
		}
		m, states, _, err := open(dir, nil)
		if err == nil {
			err = backup.Save(file, m, states)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.prefix = "/" + name
		out, err := s.store("restore --from " + file + " --era 1 --cluster c2")
		if exact := name == "exact"; exact != errors.Is(err, etcdstore.ErrNoExact) || !exact && err != nil {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
	s.prefix = "/plain"
	clear(s.last)
	for i := range seq.UID(40) {
		s.last[64*i] = backup.DefaultBump
	}
	take, stop := s.alloc("a")
	take()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func until(t *testing.T, what string, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

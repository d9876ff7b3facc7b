package localcluster

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// onEtcd is a config of a directory whose etcd nothing in these tests asks.
func onEtcd(dir string) Config {
	cfg := DefaultConfig(dir)
	cfg.Etcd = etcdclient.Flags{Endpoints: []string{"127.0.0.1:1"}, Prefix: "/p"}
	return cfg
}

func TestAClusterOnEtcdHasNoStores(t *testing.T) {
	cfg := onEtcd(t.TempDir())
	l := open(t, cfg)
	for _, nodes := range [][]Node{l.Nodes, cfg.Planned()} {
		if len(nodes) != cfg.Allocs+cfg.Routers || slices.ContainsFunc(nodes, func(n Node) bool { return n.Role == RoleStore }) {
			t.Errorf("nodes %+v, want %d allocators and %d routers", nodes, cfg.Allocs, cfg.Routers)
		}
	}
	c := &Cluster{Layout: l}
	args := strings.Join(c.arguments(cfg, l.Role(RoleAlloc)[0]), " ")
	if !strings.Contains(args, "--etcd 127.0.0.1:1 --etcd-prefix /p") || strings.Contains(args, "--stores") {
		t.Errorf("an allocator is started with %s, want the etcd and no stores", args)
	}
	if _, err := c.AddStore(); !errors.Is(err, ErrConfig) {
		t.Errorf("a store was added: got %v, want ErrConfig", err)
	}
}

func TestADirectoryOnEtcdStaysWithItsCluster(t *testing.T) {
	cfg := onEtcd(t.TempDir())
	cfg.ClusterID = "c1"
	found := func(cluster, uuid string, era seq.Era) quorum.Identity {
		return quorum.Identity{UUID: uuid, Ref: quorum.Ref{Cluster: cluster, Era: era}}
	}
	for _, step := range []struct {
		what string
		id   quorum.Identity
		want error
	}{
		{"another cluster", found("c2", "u1", 0), ErrConfig},
		{"its own for the first time", found("c1", "u1", 0), nil},
		{"its own again", found("c1", "u1", 0), nil},
		{"one made anew under its id", found("c1", "u2", 0), ErrState},
		{"one restored in place", found("c1", "u1", 1), nil},
		{"one restored elsewhere", found("c1", "u3", 2), nil},
		{"the one before it", found("c1", "u1", 1), ErrState},
	} {
		l, err := Open(cfg)
		if err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if err := l.adopt(cfg, step.id); !errors.Is(err, step.want) {
			t.Errorf("%s: got %v, want %v", step.what, err, step.want)
		}
		l.Close()
	}
	for what, change := range map[string]func(*Config){
		"without etcd":  func(c *Config) { c.Etcd = etcdclient.Flags{} },
		"other prefix":  func(c *Config) { c.Etcd.Prefix = "/q" },
		"other cluster": func(c *Config) { c.ClusterID = "c2" },
		"supervised":    func(c *Config) { c.Supervise = true },
	} {
		with := cfg
		change(&with)
		if l, err := Open(with); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: got %v, want ErrConfig", what, err)
			if l != nil {
				l.Close()
			}
		}
	}
}

func TestADirectoryWithStoresIsNotTakenToEtcd(t *testing.T) {
	cfg := DefaultConfig(t.TempDir())
	l := open(t, cfg)
	if err := l.Initialise(noInit); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := Open(onEtcd(cfg.Dir)); !errors.Is(err, ErrConfig) {
		t.Errorf("got %v, want ErrConfig", err)
	}
}

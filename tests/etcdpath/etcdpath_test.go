package etcdpath

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcdstore"
	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/etcdtest"
)

const (
	patience = 90 * time.Second
	lease    = 3 * time.Second
	sections = 64
	prefix   = "/seqsvr"
)

// node is an AllocSvr on etcd.
type node struct {
	server *allocsvr.Server
	admin  pb.AdminClient
	leave  func() error
}

func config(name string, etcd *etcdtest.Cluster) allocsvr.Config {
	cfg := allocsvr.DefaultConfig()
	cfg.Name, cfg.Listen, cfg.Lease, cfg.Logger = name, "127.0.0.1:0", lease, slog.New(slog.DiscardHandler)
	cfg.Etcd = allocsvr.Etcd{Config: etcdclient.Config{Endpoints: etcd.Endpoints()}, Prefix: prefix, Requirement: etcdclient.Requirement{MinVersion: "3.4.0"}}
	return cfg
}

func startNode(t *testing.T, name string, etcd *etcdtest.Cluster) *node {
	t.Helper()
	cfg := config(name, etcd)
	server, err := allocsvr.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ran := make(chan error, 1)
	go func() { ran <- server.Run(ctx) }()
	done := false
	n := &node{server: server, leave: func() error {
		if done {
			return nil
		}
		done = true
		stop()
		return <-ran
	}}
	t.Cleanup(func() {
		if err := n.leave(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	conn, err := rpc.Dial(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	n.admin = pb.NewAdminClient(conn)
	return n
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

func TestNumbersOnEtcdAreUniqueAndRiseOverHandOverAndDeath(t *testing.T) {
	if testing.Short() {
		t.Skip("runs etcd")
	}
	etcd := etcdtest.Start(t, 1)
	err := etcdstore.Init(t.Context(), etcd.Dial(), etcdstore.InitConfig{Prefix: prefix, Cluster: "path", Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: sections, Step: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	a := startNode(t, "a", etcd)
	c, err := client.New(t.Context(), client.Config{Addrs: []string{a.server.Addr()}, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	last := map[seq.UID]seq.Seq{}
	take := func(what string) {
		t.Helper()
		began := time.Now()
		for uid := range seq.UID(200) {
			uid *= 64 // a section each, about
			until(t, what, func() error {
				n, err := c.Next(t.Context(), client.Key{UID: uid})
				if err == nil && n <= last[uid] {
					t.Fatalf("%s: uid %d got %d after %d", what, uid, n, last[uid])
				}
				if err == nil {
					last[uid] = n
				}
				return err
			})
		}
		t.Logf("%s: 200 uids in %v", what, time.Since(began))
	}
	take("at the first node")
	st, err := a.admin.Status(t.Context(), &pb.StatusRequest{})
	if s := st.GetStores(); err != nil || len(s) != 1 || !s[0].GetReachable() || s[0].GetState() != "voting" || s[0].GetCommits() == 0 {
		t.Errorf("stores in the status: %v, %v, want one that votes", s, err)
	}
	b := startNode(t, "b", etcd)
	until(t, "the second node gets its half", func() error { return serves(t, b, sections/2) })
	take("at two nodes")
	began := time.Now()
	if err := a.leave(); err != nil {
		t.Errorf("leave: %v", err)
	}
	until(t, "the second node has all", func() error { return serves(t, b, sections) })
	t.Logf("a left in %v", time.Since(began))
	take("after a left")
	b.server.Close() // as by a crash
	d := startNode(t, "d", etcd)
	c2, err := client.New(t.Context(), client.Config{Addrs: []string{d.server.Addr()}, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c2.Close() }()
	c = c2
	take("after b died")
}

func serves(t *testing.T, n *node, want int) error {
	t.Helper()
	st, err := n.admin.Status(t.Context(), &pb.StatusRequest{})
	if err != nil {
		return err
	}
	if got := int(st.GetSectionsOwned()); got < want {
		return fmt.Errorf("%d of %d sections, stores %v", got, want, st.GetStores())
	}
	return nil
}

func TestWhatCannotBeUsedIsRefusedByNameAtTheStart(t *testing.T) {
	if testing.Short() {
		t.Skip("runs etcd")
	}
	etcd := etcdtest.Start(t, 1)
	run := func(change func(*allocsvr.Config)) error {
		cfg := config("a", etcd)
		change(&cfg)
		server, err := allocsvr.New(cfg)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return server.Run(ctx)
	}
	if err := run(func(*allocsvr.Config) {}); !errors.Is(err, etcdstore.ErrNotInitialized) {
		t.Errorf("before init: %v, want %v", err, etcdstore.ErrNotInitialized)
	}
	if err := etcdstore.Init(t.Context(), etcd.Dial(), etcdstore.InitConfig{Prefix: prefix, Cluster: "path", Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: 4}}}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name   string
		change func(*allocsvr.Config)
		want   error
	}{
		{"another cluster", func(c *allocsvr.Config) { c.ClusterID = "other" }, seq.ErrForeignCluster},
		{"another prefix", func(c *allocsvr.Config) { c.Etcd.Prefix = "/elsewhere" }, etcdstore.ErrNotInitialized},
		{"an old version", func(c *allocsvr.Config) { c.Etcd.Requirement.MinVersion = "9.0.0" }, etcdclient.ErrVersion},
		{"stores beside it", func(c *allocsvr.Config) { c.Stores = []string{"127.0.0.1:1"} }, seq.ErrBadArgument},
	} {
		if err := run(row.change); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", row.name, err, row.want)
		}
	}
}

package etcdpath

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/etcdtest"
)

func TestNumbersOnEtcdAreUniqueAndRiseOverHandOverAndDeath(t *testing.T) {
	if testing.Short() {
		t.Skip("runs etcd")
	}
	etcd := etcdtest.Start(t, 1)
	initCluster(t, etcd, sections)
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
	shares(t, a, b)
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
	initCluster(t, etcd, 4)
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

package etcdpath

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/etcdtest"
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

func initCluster(t *testing.T, etcd *etcdtest.Cluster, sections uint32) {
	t.Helper()
	err := etcdstore.Init(t.Context(), etcd.Dial(), etcdstore.InitConfig{Prefix: prefix, Cluster: "path",
		Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: sections, Step: 100}}})
	if err != nil {
		t.Fatal(err)
	}
}

func startNode(t *testing.T, name string, etcd *etcdtest.Cluster, change ...func(*allocsvr.Config)) *node {
	t.Helper()
	cfg := config(name, etcd)
	for _, c := range change {
		c(&cfg)
	}
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
	began := time.Now()
	for {
		err := f()
		if err == nil {
			if took := time.Since(began); took > 200*time.Millisecond {
				t.Logf("%s: after %v", what, took.Round(10*time.Millisecond))
			}
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
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

// shares waits until each of the nodes has a share of the sections, without the time that is given to
// a change otherwise.
func shares(t *testing.T, nodes ...*node) {
	t.Helper()
	var planned time.Time
	until(t, fmt.Sprintf("%d nodes have their shares", len(nodes)), func() error {
		var missing error
		for _, n := range nodes {
			missing = errors.Join(missing, serves(t, n, sections/len(nodes)/2))
		}
		if missing == nil || time.Since(planned) < time.Second {
			return missing
		}
		planned = time.Now()
		_, err := nodes[0].admin.Rebalance(t.Context(), &pb.RebalanceRequest{})
		return errors.Join(missing, err)
	})
}

// load is a caller that takes numbers of its UIDs, one after the other, all the time. It checks that the
// numbers of each UID rise.
type load struct {
	t     *testing.T
	start time.Time
	began atomic.Int64 // the latest round in which each UID got a number: when it began, after start
}

// uids are as many as the load has: a section each, about.
const uids = 100

// callers starts a load on these nodes; it ends with the test.
func callers(t *testing.T, nodes ...*node) *load {
	t.Helper()
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.server.Addr())
	}
	c, err := client.New(t.Context(), client.Config{Addrs: addrs, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	l := &load{t: t, start: time.Now()}
	var running sync.WaitGroup
	running.Go(func() { l.run(ctx, c) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		_ = c.Close()
	})
	return l
}

func (l *load) run(ctx context.Context, c *client.Client) {
	last := map[seq.UID]seq.Seq{}
	for ctx.Err() == nil {
		began := time.Since(l.start)
		for uid := range seq.UID(uids) {
			for ctx.Err() == nil {
				n, err := l.next(ctx, c, uid*64)
				if err != nil {
					select {
					case <-time.After(20 * time.Millisecond):
					case <-ctx.Done():
					}
					continue
				}
				if n <= last[uid] {
					l.t.Errorf("uid %d got %d after %d", uid, n, last[uid])
				}
				last[uid] = n
				break
			}
		}
		if ctx.Err() == nil {
			l.began.Store(int64(began))
		}
	}
}

func (l *load) next(ctx context.Context, c *client.Client, uid seq.UID) (seq.Seq, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return c.Next(ctx, client.Key{UID: uid})
}

// goesOn waits until every UID has got a number that was asked for a lease after now, which no lease
// of before can have given.
func (l *load) goesOn(what string) {
	l.t.Helper()
	now := time.Since(l.start)
	until(l.t, "numbers "+what, func() error {
		if began := time.Duration(l.began.Load()); began <= now+lease {
			return fmt.Errorf("the latest were asked for %v after the beginning", began-now)
		}
		return nil
	})
}

package bench

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/sessiontest"
	"github.com/seqsvr/seqsvr/internal/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
)

// stores starts three StoreSvr over loopback and gives a group over them.
func stores(b testing.TB, sections uint32) *quorum.Group {
	b.Helper()
	group, _ := group(b, storeAddrs(b, sections))
	return group
}

// storeAddrs starts three StoreSvr over loopback.
func storeAddrs(b testing.TB, sections uint32) []string {
	b.Helper()
	names := []string{"s1", "s2", "s3"}
	var addrs []string
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	b.Cleanup(func() { cancel(); wg.Wait() })
	for _, name := range names {
		s, err := storesvr.New(initStore(b, name, names, sections))
		if err != nil {
			b.Fatal(err)
		}
		addrs = append(addrs, s.Addr())
		wg.Go(func() {
			if err := s.Run(ctx); err != nil {
				b.Error(err)
			}
		})
	}
	return addrs
}

// initStore makes the database of a store, and gives what it starts with.
func initStore(b testing.TB, name string, members []string, sections uint32) storesvr.Config {
	b.Helper()
	cfg := storesvr.DefaultConfig()
	cfg.DataDir, cfg.Listen, cfg.Logger = filepath.Join(b.TempDir(), name), "127.0.0.1:0", slog.New(slog.DiscardHandler)
	err := storesvr.Init(storesvr.InitConfig{DataDir: cfg.DataDir, ClusterID: "bench", Name: name, MemberNames: members,
		Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: sections}}})
	if err != nil {
		b.Fatal(err)
	}
	return cfg
}

// group connects to the stores.
func group(b testing.TB, addrs []string) (*quorum.Group, storeclient.Cluster) {
	b.Helper()
	ctx, done := context.WithTimeout(b.Context(), 30*time.Second)
	defer done()
	cluster, err := storeclient.Connect(ctx, addrs)
	if err != nil {
		b.Fatal(err)
	}
	named := make([]quorum.NamedStore, len(cluster.Stores))
	for i, s := range cluster.Stores {
		named[i] = quorum.NamedStore{Name: s.Addr, UUID: s.UUID, Store: sessiontest.Signed(s.Client)}
	}
	id := cluster.Identity
	g, err := quorum.NewGroup(quorum.Config{Ref: id.Ref, N: id.N, R: id.R, W: id.W, Timeout: 30 * time.Second}, named)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { g.Close(); _ = cluster.Close() })
	return g, cluster
}

// commits are the transactions of each store so far.
func commits(b testing.TB, cluster storeclient.Cluster) (all []uint64) {
	b.Helper()
	for _, s := range cluster.Stores {
		id, err := s.Client.Describe(b.Context())
		if err != nil {
			b.Fatal(fmt.Errorf("describe %s: %w", s.Addr, err))
		}
		all = append(all, id.Commits)
	}
	return all
}

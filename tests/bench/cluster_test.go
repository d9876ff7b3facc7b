package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
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
	return harness.Stores(b, 3, seq.Space{Sections: sections})
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

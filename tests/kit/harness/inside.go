package harness

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
)

// Inside runs a daemon in this process. It is stopped in order by stop, or at the end of
// the test, the last one first.
func Inside(t testing.TB, what string, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// StoreConfig makes the database of a store, and gives what it starts with: on a free
// port, without a log. The first space is the default one.
func StoreConfig(t testing.TB, name string, members []string, spaces ...seq.Space) storesvr.Config {
	t.Helper()
	cfg := storesvr.DefaultConfig()
	cfg.DataDir, cfg.Listen, cfg.Logger = filepath.Join(t.TempDir(), name), "127.0.0.1:0", slog.New(slog.DiscardHandler)
	spaces = slices.Clone(spaces)
	spaces[0].Name = seq.DefaultSpace
	err := storesvr.Init(storesvr.InitConfig{DataDir: cfg.DataDir, ClusterID: "inside", Name: name, MemberNames: members, Spaces: spaces})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Stores runs the stores of a cluster in this process, and gives their addresses.
func Stores(t testing.TB, count int, spaces ...seq.Space) (addrs []string) {
	t.Helper()
	var members []string
	for i := range count {
		members = append(members, fmt.Sprintf("store-%d", i+1))
	}
	for _, name := range members {
		s, err := storesvr.New(StoreConfig(t, name, members, spaces...))
		if err != nil {
			t.Fatal(err)
		}
		Inside(t, name, s.Run)
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

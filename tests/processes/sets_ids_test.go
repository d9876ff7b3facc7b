package processes

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// Whichever Set is killed, the root as well, callers of global IDs see neither an error nor an ID
// twice.
func TestGlobalIDsGoOnWhicheverSetIsKilled(t *testing.T) {
	_, _, all := twoSets(t)
	ctx, stop := context.WithCancel(harness.Within(t))
	defer stop()
	sdk, err := client.New(ctx, client.Config{Addrs: append(all[0].Addrs(localcluster.RoleAlloc), all[1].Addrs(localcluster.RoleAlloc)...), Timeout: harness.Patience})
	if err != nil {
		t.Fatal(err)
	}
	defer sdk.Close()
	harness.Until(t, "the map", func() bool {
		known := sdk.Sets()
		sdk.Caller().Table().Refresh()
		return len(known.All) == 2 && known.All[1].Routes != nil
	})

	var mu sync.Mutex // guards seen and workers
	seen, workers := map[snowflake.ID]bool{}, map[snowflake.Worker]bool{}
	var made atomic.Int64
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				got, err := sdk.Generate(ctx, "", 2)
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				workers[got.Worker] = true
				for id := range got.All() {
					if seen[id] {
						t.Errorf("%d twice", id)
					}
					seen[id] = true
				}
				mu.Unlock()
				made.Add(1)
			}
		})
	}
	more := func(what string) {
		t.Helper()
		before := made.Load()
		harness.Until(t, what, func() bool { return made.Load() > before+200 || t.Failed() })
	}
	more("IDs of both Sets")
	for i := range all {
		all[i].KillAll()
		more("IDs while one Set is dead")
		if err := all[i].StartAll(); err != nil {
			t.Fatal(err)
		}
		more("IDs after it")
		harness.Ready(t, all[i])
	}
	stop()
	callers.Wait()
	t.Logf("%d IDs of %d worker ids", len(seen), len(workers))
	if len(workers) < 4 {
		t.Errorf("IDs of %d worker ids, want those of two nodes of each Set", len(workers))
	}
}

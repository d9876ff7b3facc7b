package processes

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// counting takes numbers of a space by an SDK of its own until it is stopped: each is the next
// one of its key, and no call fails.
type counting struct {
	stop context.CancelFunc
	good atomic.Uint64
	wg   sync.WaitGroup
}

var lastCaller atomic.Uint64

func count(t *testing.T, addrs []string, space string, callers int) *counting {
	t.Helper()
	sdk, err := client.New(harness.Within(t), client.Config{Addrs: addrs, Timeout: harness.Patience, AttemptTimeout: attempt})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(harness.Within(t))
	l := &counting{stop: stop}
	for range callers {
		who := lastCaller.Add(1) // no two share a key
		l.wg.Go(func() {
			last := map[client.Key]seq.Seq{}
			for n := 0; ctx.Err() == nil; n++ {
				key := client.Key{Space: space, UID: seq.UID(who<<20 + uint64(n%50*64))}
				if n%3 == 0 {
					key = client.StringKey(space, fmt.Sprint("key", who, ".", n%50))
				}
				got, err := sdk.Next(ctx, key)
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("%v: %v", key, err)
					}
					return
				}
				if got != last[key]+1 {
					t.Errorf("%v: got %d after %d", key, got, last[key])
					return
				}
				last[key] = got
				l.good.Add(1)
			}
		})
	}
	t.Cleanup(func() { l.end(); sdk.Close() })
	return l
}

func (l *counting) end() {
	l.stop()
	l.wg.Wait()
}

// flows waits until more numbers were taken.
func (l *counting) flows(t *testing.T, what string) {
	t.Helper()
	from := l.good.Load()
	harness.Until(t, "numbers taken "+what, func() bool { return l.good.Load() > from+100 })
}

// Spaces of several modes are added under load, one of them while a store is away: callers of
// other spaces meet no error and no gap, and those that call for a new space at once get its
// numbers from 1 on.
func TestSpacesAreAddedUnderLoadWithoutAnErrorToAnybody(t *testing.T) {
	c := start(t, func(cfg *localcluster.Config) { cfg.Sections, cfg.Step = 32, 1000 })
	web := []string{c.GRPC()}
	direct, routed := count(t, c.Addrs(localcluster.RoleAlloc), "", 3), count(t, web, "", 2)
	direct.flows(t, "at first")
	add := func(form string, more ...string) harness.Ended {
		t.Helper()
		return run(t, "seqctl", append([]string{"space", "add", form, "--addr", c.GRPC()}, more...)...)
	}
	add("room:sections=16", "--wait").Want(t, 0, "room", "served")
	room := count(t, c.Addrs(localcluster.RoleAlloc), "room", 2)
	room.flows(t, "of the new space")

	away := c.Process("store-2")
	if err := away.Kill(); err != nil {
		t.Fatal(err)
	}
	add("live:mode=strict,sections=8", "--wait").Want(t, 0, "live", "strict", "served")
	add("live:mode=strict,sections=8").Want(t, 0, "live") // again
	add("live:sections=8").Want(t, 1, "is there", "mode=strict")
	live := count(t, web, "live", 2)
	live.flows(t, "with a store away")
	if err := away.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Until(t, "the store that was away has heard of the space", func() bool {
		s, err := storeclient.Dial(away.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		id, err := s.Describe(harness.Within(t))
		return err == nil && len(id.Mapping.Spaces) == 3 && id.Voting
	})
	add("orders:mode=exact,window=10m,sections=4", "--wait").Want(t, 0, "orders", "exact", "served")
	orders := count(t, c.Addrs(localcluster.RoleAlloc), "orders", 2)
	orders.flows(t, "of the exact space")
	ask := func(replayed bool) {
		t.Helper()
		run(t, "seqctl", "next", "--space", "orders", "--request-id", "m-1", "7", "--addr", c.GRPC()).Want(t, 0, strconv.FormatBool(replayed))
	}
	ask(false)
	if err := c.Process("store-1").Kill(); err != nil { // what is left is it and another
		t.Fatal(err)
	}
	killed := time.Now()
	harness.Until(t, "what store-1 had promised is over", func() bool { return time.Since(killed) > lease })
	for _, l := range []*counting{direct, routed, room, live, orders} {
		l.flows(t, "at the end")
	}
	var rows []struct {
		Space, Mode, Node string
		Added, Unheard    bool
	}
	harness.Until(t, "all spaces listed for all nodes", func() bool { // on a busy machine one is taken for dead at times
		list := run(t, "seqctl", "space", "list", "--addr", c.GRPC(), "-o", "json")
		rows = nil
		err := json.Unmarshal([]byte(list.Stdout), &rows)
		return err == nil && len(rows) == 12
	})
	for _, r := range rows {
		if r.Unheard || r.Added != (r.Space != seq.DefaultSpace) || (r.Mode == string(seq.Strict)) != (r.Space == "live") {
			t.Errorf("row %+v", r)
		}
	}
	for _, l := range []*counting{direct, routed, room, live, orders} {
		l.end()
	}

	// A start of everything finds the spaces on the stores.
	if err := c.StopAll(harness.Within(t)); err != nil {
		t.Fatal(err)
	}
	if err := c.StartAll(); err != nil {
		t.Fatal(err)
	}
	harness.Ready(t, c)
	run(t, "seqctl", "next", "--space", "live", "7", "--addr", c.GRPC()).Want(t, 0)
	ask(true)
}

// coordinator is an operator's process that dies when the test says.
func coordinator(t *testing.T, c *localcluster.Cluster) (storeclient.Cluster, *documents.Spaces) {
	t.Helper()
	cluster, err := storeclient.Connect(harness.Within(t), c.Addrs(localcluster.RoleStore))
	if err != nil {
		t.Fatal(err)
	}
	secret, id := seq.NewSecret(""), cluster.Identity
	group, err := quorum.NewGroup(quorum.Config{Ref: id.Ref, N: id.N, R: id.R, W: id.W, Secret: secret}, storeclient.NamedStores(cluster.Stores))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { group.Close(); _ = cluster.Close() })
	return cluster, documents.NewSpaces(t.Context(), group, secret.Session())
}

// An add of a space dies after each step: decided, one store told, W told. The next add, of any space,
// completes the first. If a store has heard of the space, the change continues by itself.
func TestASpaceWhoseAddDiedAfterAnyStepIsThereInTheEnd(t *testing.T) {
	c := start(t, func(cfg *localcluster.Config) { cfg.Sections, cfg.Step = 32, 1000 })
	callers := count(t, c.Addrs(localcluster.RoleAlloc), "", 2)
	for told := range 3 {
		name := fmt.Sprint("s", told)
		cluster, decided := coordinator(t, c)
		m, err := decided.Add(harness.Within(t), cluster.Identity.Mapping, seq.Space{Name: name, Sections: 4})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range cluster.Stores[:told] {
			if _, err := s.Client.Extend(harness.Within(t), cluster.Identity.Ref.Cluster, cluster.Identity.Ref.Era, m); err != nil {
				t.Fatal(err)
			}
		}
		if told == 0 { // the document alone has it
			run(t, "seqctl", "next", "--space", name, "7", "--addr", c.GRPC()).Want(t, 1, "unknown space")
			run(t, "seqctl", "space", "add", "other:sections=2", "--wait", "--addr", c.GRPC()).Want(t, 0, "other", "36")
		}
		served := count(t, c.Addrs(localcluster.RoleAlloc), "", 1)
		harness.Until(t, "the space "+name+" is served", func() bool {
			return run(t, "seqctl", "next", "--space", name, "7", "--addr", c.GRPC(), "--timeout", "2s").Code == 0
		})
		served.flows(t, "with "+name)
		run(t, "seqctl", "space", "add", name+":sections=4", "--wait", "--addr", c.GRPC()).Want(t, 0, name, "served")
		served.end()
	}
	callers.end() // a crash skips numbers
	// An AllocSvr that dies while it is asked is one like these: the same add at another one.
	killed := c.Process("alloc-1")
	time.AfterFunc(20*time.Millisecond, func() { _ = killed.Kill() })
	run(t, "seqctl", "space", "add", "last:sections=4", "--addr", c.Role(localcluster.RoleAlloc)[0].Addr)
	harness.Until(t, "the add is made at another node", func() bool {
		return run(t, "seqctl", "space", "add", "last:sections=4", "--addr", c.GRPC()).Code == 0
	})
	<-killed.Done()
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Ready(t, c)
	run(t, "seqctl", "space", "add", "last:sections=4", "--wait", "--addr", c.GRPC()).Want(t, 0, "served")
}

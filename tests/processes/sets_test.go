package processes

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

const setSections = 16

// dialled are connections to AllocSvr: setadmin.Conns.
type dialled map[string]*grpc.ClientConn

func (d dialled) At(addr string) (grpc.ClientConnInterface, error) {
	if d[addr] == nil {
		conn, err := rpc.Dial(addr)
		if err != nil {
			return nil, err
		}
		d[addr] = conn
	}
	return d[addr], nil
}

// twoSets are two clusters, the second of which is a Set of the first without sections.
func twoSets(t *testing.T) (root *setadmin.Root, conns dialled, all [2]*localcluster.Cluster) {
	t.Helper()
	for i := range all {
		all[i] = harness.Start(t, func(cfg *localcluster.Config) {
			cfg.Lease = 5 * time.Second // none ends on a busy machine
			cfg.Allocs, cfg.Sections = 2, setSections
			cfg.Args = map[localcluster.Role][]string{localcluster.RoleRouter: {"--attempt-timeout", "20s"}}
		})
	}
	conns = dialled{}
	t.Cleanup(func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	})
	root = &setadmin.Root{Set: setadmin.NewSet(sets.RootName, all[0].Addrs(localcluster.RoleAlloc), conns)}
	other := setadmin.NewSet("b", all[1].Addrs(localcluster.RoleAlloc), conns)
	if _, err := root.Add(harness.Within(t), other, all[0].Addrs(localcluster.RoleAlloc)); err != nil {
		t.Fatal(err)
	}
	return root, conns, all
}

// move moves sections to a Set.
func move(t *testing.T, root *setadmin.Root, conns dialled, to string, ranges ...sets.Range) {
	t.Helper()
	ctx := harness.Within(t)
	open, err := root.Begin(ctx, to, ranges)
	if err != nil {
		t.Fatal(err)
	}
	m, err := root.Map(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mover, err := root.Mover(m, open, conns)
	if err != nil {
		t.Fatal(err)
	}
	harness.Until(t, "the move", func() bool {
		if err = mover.Finish(ctx); err != nil {
			t.Log(err)
		}
		return err == nil
	})
}

// Callers of AllocSvr and of a router of either Set see no error and rising numbers while sections
// go from one Set to the other and back.
func TestCallersFollowSectionsFromOneSetToAnother(t *testing.T) {
	root, conns, all := twoSets(t)
	var callers []*climbing
	for _, c := range all {
		callers = append(callers, climb(t, c.Addrs(localcluster.RoleAlloc)), climb(t, []string{c.GRPC()}))
	}
	goOn := func(what string) {
		t.Helper()
		for _, l := range callers {
			before := l.good.Load()
			harness.Until(t, what, func() bool { return t.Failed() || l.good.Load() >= before+200 })
		}
	}
	goOn("numbers before any move")
	move(t, root, conns, "b", sets.Range{First: 0, Sections: 5})
	goOn("numbers after the first move")
	move(t, root, conns, "b", sets.Range{First: 5, Sections: 11})
	goOn("numbers when the other Set has all")
	move(t, root, conns, sets.RootName, sets.Range{First: 2, Sections: 4}, sets.Range{First: 9, Sections: 1})
	goOn("numbers after a move back")
	for _, l := range callers {
		l.end()
		t.Logf("%d numbers, %d skipped, longest wait %v", l.good.Load(), l.skipped.Load(), time.Duration(l.longest.Load()))
	}
}

// climbing takes numbers of keys of its own by one SDK until it ends. No call fails, and the
// numbers of a key rise; how many were skipped, as by a takeover on a slow machine, is counted.
type climbing struct {
	good, failed atomic.Uint64
	skipped      atomic.Uint64
	longest      atomic.Int64
	end          func()
}

// A call may fail with an error that may allows.
func climb(t *testing.T, addrs []string, may ...func(error) bool) *climbing {
	t.Helper()
	return climbBy(t, client.Config{Addrs: addrs}, may...)
}

func climbBy(t *testing.T, cfg client.Config, may ...func(error) bool) *climbing {
	t.Helper()
	cfg.Timeout, cfg.AttemptTimeout = harness.Patience, attempt
	sdk, err := client.New(harness.Within(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(harness.Within(t))
	l, done := &climbing{}, make(chan struct{})
	who := lastCaller.Add(1)
	go func() {
		defer close(done)
		last := map[seq.UID]seq.Seq{}
		for n := 0; ctx.Err() == nil; n++ {
			uid, begun := seq.UID(who<<20+uint64(n%50*64)), time.Now()
			got, err := sdk.Next(ctx, client.Key{UID: uid})
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && len(may) > 0 && may[0](err):
				l.failed.Add(1)
				continue
			case err != nil || got <= last[uid]:
				t.Errorf("uid %d: got %d, %v after %d", uid, got, err, last[uid])
				return
			}
			l.longest.Store(max(l.longest.Load(), int64(time.Since(begun))))
			l.skipped.Add(uint64(got - last[uid] - 1))
			last[uid] = got
			l.good.Add(1)
		}
	}()
	l.end = sync.OnceFunc(func() { stop(); <-done; _ = sdk.Close() })
	t.Cleanup(l.end)
	return l
}

// watched takes numbers of one section until it is stopped, and notes errors and the longest wait.
type watched struct {
	good, bad atomic.Uint64
	last      atomic.Pointer[error]
	longest   atomic.Int64
}

func (w *watched) run(ctx context.Context, sdk *client.Client, uid seq.UID) {
	for ctx.Err() == nil {
		begun := time.Now()
		_, err := sdk.Next(ctx, client.Key{UID: uid})
		if ctx.Err() != nil {
			return
		}
		if took := int64(time.Since(begun)); took > w.longest.Load() {
			w.longest.Store(took)
		}
		if err != nil {
			w.last.Store(&err)
			w.bad.Add(1)
			continue
		}
		w.good.Add(1)
	}
}

// A Set all of whose processes are killed stops its own callers, with an error that names it, and
// no others; and serves them again when it is back.
func TestASetThatIsKilledStopsItsOwnCallersOnly(t *testing.T) {
	root, conns, all := twoSets(t)
	move(t, root, conns, "b", sets.Range{First: 0, Sections: setSections / 2})
	sdk, err := client.New(harness.Within(t), client.Config{Addrs: all[0].Addrs(localcluster.RoleAlloc), Timeout: harness.Patience})
	if err != nil {
		t.Fatal(err)
	}
	defer sdk.Close()
	harness.Until(t, "the map", func() bool {
		known := sdk.Sets()
		sdk.Caller().Table().Refresh()
		return len(known.All) == 2 && known.All[1].Routes != nil && known.All[1].Sections == setSections/2
	})
	m, _ := sdk.Caller().Table().Mapping()
	uid := func(id seq.SectionID) seq.UID {
		for uid := seq.UID(0); ; uid += 1 << seq.BlockBits {
			if m.Spaces[0].SectionOf(uid) == id {
				return uid
			}
		}
	}
	ctx, stop := context.WithCancel(harness.Within(t))
	defer stop()
	living, dead := &watched{}, &watched{}
	go living.run(ctx, sdk, uid(setSections-1))
	go dead.run(ctx, sdk, uid(0))
	harness.Until(t, "numbers of both", func() bool { return living.good.Load() > 100 && dead.good.Load() > 100 })
	all[1].KillAll()
	harness.Until(t, "errors of the dead Set", func() bool { return dead.bad.Load() > 10 })
	if err := *dead.last.Load(); !errors.Is(err, seq.ErrNoQuorum) || !errors.Is(err, client.ErrUnreachable) || !strings.Contains(err.Error(), "Set b:") {
		t.Errorf("got %v, want one that names the Set", err)
	}
	t.Logf("longest wait: %v for the living Set, %v for the dead one", time.Duration(living.longest.Load()), time.Duration(dead.longest.Load()))
	before := living.good.Load()
	harness.Until(t, "more numbers of the living Set", func() bool { return living.good.Load() > before+100 })
	if living.bad.Load() > 0 {
		t.Errorf("the living Set: %d errors: %v", living.bad.Load(), *living.last.Load())
	}
	if err := all[1].StartAll(); err != nil {
		t.Fatal(err)
	}
	again := dead.good.Load()
	harness.Until(t, "the Set to be back", func() bool { return dead.good.Load() > again+100 })
}

// All processes of a Set are killed and start again while the root is dead. A client that knows its
// addresses alone is served what the Set has, and told by name of what it has not.
func TestASetThatRestartsWhileTheRootIsDeadServesItsOwnSections(t *testing.T) {
	root, conns, all := twoSets(t)
	move(t, root, conns, "b", sets.Range{First: 0, Sections: setSections / 2})
	addrs := all[1].Addrs(localcluster.RoleAlloc)
	knows := func(addr string) *client.Client {
		sdk, err := client.New(harness.Within(t), client.Config{Addrs: []string{addr}, Timeout: harness.Patience})
		if err != nil {
			return nil
		}
		if known := sdk.Sets(); len(known.All) != 2 || known.All[1].Sections != setSections/2 {
			_ = sdk.Close()
			return nil
		}
		return sdk
	}
	for _, addr := range addrs {
		conn, err := conns.At(addr)
		if err != nil {
			t.Fatal(err)
		}
		harness.Until(t, "the Set to hear of the move", func() bool { // by itself: a client would ask the root, too
			reply, err := pb.NewSequenceClient(conn).Routes(harness.Within(t), &pb.RoutesRequest{})
			return err == nil && len(reply.GetSets().GetRuns()) > 0
		})
	}
	all[0].KillAll()
	// The nodes soon write to their stores what they have heard.
	harness.Until(t, "a node that starts to know of both Sets", func() bool {
		if err := all[1].Processes(localcluster.RoleAlloc)[0].Restart(harness.Within(t)); err != nil {
			t.Fatal(err)
		}
		sdk := knows(addrs[0])
		return sdk != nil && sdk.Close() == nil
	})
	all[1].KillAll()
	if err := all[1].StartAll(); err != nil {
		t.Fatal(err)
	}
	for _, addr := range addrs {
		sdk := knows(addr)
		if sdk == nil {
			t.Fatalf("%s forgot the other Set", addr)
		}
		defer sdk.Close()
		m, _ := sdk.Caller().Table().Mapping()
		for uid, had, lacked := seq.UID(0), false, false; !had || !lacked; uid += 1 << seq.BlockBits {
			here := m.Spaces[0].SectionOf(uid) < setSections/2
			if here && had || !here && lacked {
				continue
			}
			_, err := sdk.Next(harness.Within(t), client.Key{UID: uid})
			if had = had || here; here && err != nil {
				t.Errorf("%s: a section of the Set: %v", addr, err)
			}
			if lacked = lacked || !here; !here && (!errors.Is(err, seq.ErrNoQuorum) || !strings.Contains(err.Error(), "Set "+sets.RootName)) {
				t.Errorf("%s: a section of the root: %v", addr, err)
			}
		}
	}
}

package globalid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// small has two worker ids.
const small = "time:43,worker:1,sequence:12;epoch=1700000000000"

func parts(t *testing.T, layout string, id snowflake.ID) snowflake.Parts {
	t.Helper()
	l, err := namespaces.ParseLayout(layout)
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Decode(id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestANodeHandsOutIDsWithoutBeingSetUp(t *testing.T) {
	c := newCluster(t)
	n := c.start("alloc-1", func(c *Config) { c.Node.Datacenter = namespaces.Datacenter{ID: 1, Name: "cn"} })
	ids, got := n.must("", 3)
	if got.Namespace != "default" || got.Layout != "twitter" || got.Datacenter != 1 {
		t.Errorf("got %+v", got)
	}
	for k, id := range ids {
		if p := parts(t, "twitter", id); p.Datacenter != 1 || p.Worker != got.Worker || p.Sequence != uint64(k) {
			t.Errorf("id %d: got %+v", k, p)
		}
	}
	for alias, name := range map[string]string{"1": "regional-1", "2": "regional-2"} {
		if _, got := n.must(alias, 1); got.Namespace != name || got.Layout != "regional" {
			t.Errorf("alias %s: got %+v", alias, got)
		}
	}
	d, err := n.svc.Load().names.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Namespaces) != 3 || d.Namespaces[0].Version != 1 || !slices.Equal(d.Datacenters, []namespaces.Datacenter{{ID: 1, Name: "cn"}}) {
		t.Errorf("recorded: got %+v", d)
	}
}

func TestTheWorkerIDWithTheOldestMarkIsTakenFirst(t *testing.T) {
	c := newCluster(t)
	a := c.start("a")
	c.add(a, "s", small)
	_, first := a.must("s", 1)
	a.leave()
	c.pass(time.Second)
	b := c.start("b") // a worker id that was never used goes before
	_, second := b.must("s", 1)
	if first.Worker == second.Worker {
		t.Fatalf("both had worker %d", first.Worker)
	}
	b.leave()
	if _, got := c.start("c").must("s", 1); got.Worker != first.Worker {
		t.Errorf("got worker %d, want %d", got.Worker, first.Worker)
	}
}

func TestAReleasedWorkerIDIsFreeAtOnceAndAKilledOneWhenItsLeaseEnds(t *testing.T) {
	c := newCluster(t)
	a, b := c.start("a"), c.start("b")
	c.add(a, "s", small)
	a.must("s", 1)
	b.must("s", 1)
	_, _, err := c.start("c").gen("s", 1)
	if !errors.Is(err, seq.ErrWorkersExhausted) || !strings.Contains(err.Error(), "by a for") || !strings.Contains(err.Error(), "by b for") {
		t.Errorf("got %v, want it to name a and b", err)
	}
	a.leave()
	d := c.start("d")
	d.must("s", 1)
	b.kill()
	e := c.start("e")
	if _, _, err := e.gen("s", 1); !errors.Is(err, seq.ErrWorkersExhausted) {
		t.Errorf("while the lease of the dead runs: got %v", err)
	}
	c.pass(2 * testLease)
	eventually(t, "the dead node's worker id is taken over", func() bool {
		_, _, err := e.gen("s", 1)
		return err == nil
	})
	if _, _, err := a.gen("s", 1); !errors.Is(err, seq.ErrShuttingDown) {
		t.Errorf("after a release: got %v, want %v", err, seq.ErrShuttingDown)
	}
}

func TestAStepOfUnknownOutcomeDoesNotMoveTheCeiling(t *testing.T) {
	for _, f := range []fault{failsNotApplied, failsButApplied} {
		c := newCluster(t)
		n := c.start("a")
		n.must("", 1)
		l := n.lease("default")
		before := l.Mark()
		c.fail(f, 0, 1)
		c.pass(2 * workers.DefaultWindow)
		_, _, err := n.genWithin(300*time.Millisecond, "", 1)
		if !errors.Is(err, seq.ErrNoQuorum) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("fault %d: got %v, want no quorum and the deadline", f, err)
		}
		if got := l.Mark(); got != before {
			t.Errorf("fault %d: ceiling moved from %d to %d", f, before, got)
		}
		c.fail(works, 0, 1, 2)
		n.must("", 1)
		if got := c.max(l.Register); got < uint64(l.Mark()) {
			t.Errorf("fault %d: stores have %d, the node uses %d", f, got, l.Mark())
		}
	}
}

func TestAFirstMarkOfUnknownOutcomeIsNotUsed(t *testing.T) {
	for _, f := range []fault{failsNotApplied, failsButApplied} {
		c := newCluster(t)
		n := c.start("a")
		c.fail(f, 0, 1)
		if _, _, err := n.gen("", 1); !errors.Is(err, seq.ErrNoQuorum) {
			t.Errorf("fault %d: got %v, want %v", f, err, seq.ErrNoQuorum)
		}
		shown, err := server{s: n.svc.Load()}.Workers(t.Context(), &pb.SnowflakeWorkersRequest{})
		if l := n.lease("default"); err != nil || l != nil || len(shown.Workers) != 1 {
			t.Fatalf("fault %d: lease %v, worker ids %v, %v", f, l, shown, err)
		}
		want := snowflake.Worker(shown.Workers[0].WorkerId)
		c.fail(works, 0, 1, 2)
		eventually(t, "a worker id", func() bool {
			_, got, err := n.gen("", 1)
			if err == nil && got.Worker != want {
				t.Errorf("fault %d: got worker %d, want that of the attempt before, %d", f, got.Worker, want)
			}
			return err == nil
		})
	}
}

func TestALostWorkerIDIsSealedAtOnceAndAnotherOneTaken(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	ids, got := n.must("", 1)
	l := n.lease("default")

	// Its lease runs out, and another session takes the worker id under a higher epoch.
	n.leases.mu.Lock()
	n.leases.dead = true
	n.leases.mu.Unlock()
	c.pass(2 * testLease)
	other := seq.NewSession()
	out := c.group.Prepare(t.Context(), other, []quorum.PrepareItem{{Register: l.Register, Round: l.Round + 1}})[0]
	if out.State != quorum.Won || out.Max < uint64(l.Mark()) {
		t.Fatalf("got %+v", out)
	}
	more, _ := n.must("", 1) // in its confirmed window, which the other's floor is above
	floor, err := layout(t, "twitter").TickAt(time.UnixMilli(int64(out.Max)))
	if err != nil {
		t.Fatal(err)
	}
	if more[0] <= ids[0] || parts(t, "twitter", more[0]).Tick > floor {
		t.Errorf("got %d after %d, the other starts above %d", more[0], ids[0], out.Max)
	}
	n.leases.mu.Lock()
	n.leases.dead = false
	n.leases.mu.Unlock()
	// Beyond the window, even if the keeper had extended it a moment before the other came.
	c.wall.Add(2 * workers.DefaultWindow.Milliseconds())
	_, after := n.must("", 1)
	if after.Worker == got.Worker {
		t.Errorf("still worker %d", after.Worker)
	}
	if _, err := l.Draw(t.Context(), 1); !errors.Is(err, snowflake.ErrSealed) {
		t.Errorf("the old generator: got %v, want %v", err, snowflake.ErrSealed)
	}
}

func TestAStoreThatTellsOfALossEndsTheWorkerID(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	_, got := n.must("", 1)
	l := n.lease("default")
	n.svc.Load().Lost(l.Register, l.Round+1) // of another epoch: nothing happens
	if _, same := n.must("", 1); same.Worker != got.Worker {
		t.Errorf("lost by the word on another epoch")
	}
	n.svc.Load().Lost(l.Register, l.Round)
	if _, err := l.Draw(t.Context(), 1); !errors.Is(err, snowflake.ErrSealed) {
		t.Errorf("got %v, want %v", err, snowflake.ErrSealed)
	}
	n.must("", 1)
}

func TestAClockFarFromTheStoresIsRefusedByName(t *testing.T) {
	c := newCluster(t)
	n := c.start("ahead")
	n.jump(365 * 24 * time.Hour)
	if _, _, err := n.gen("", 1); !errors.Is(err, seq.ErrClockOff) {
		t.Errorf("ahead at start: got %v, want %v", err, seq.ErrClockOff)
	}
	n.offset.Store(0)
	eventually(t, "ids after the clock was set", func() bool { _, _, err := n.gen("", 1); return err == nil })
	n.jump(time.Hour)
	if _, _, err := n.gen("", 1); !errors.Is(err, seq.ErrClockOff) {
		t.Errorf("ahead later: got %v, want %v", err, seq.ErrClockOff)
	}
	n.offset.Store(0)
	n.must("", 1)
	n.jump(-time.Hour)
	if _, _, err := n.gen("", 1); !errors.Is(err, seq.ErrClockRollback) {
		t.Errorf("back: got %v, want %v", err, seq.ErrClockRollback)
	}
}

func TestAFreeWorkerIDWhoseMarkIsFarAheadIsNotUsed(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	c.add(n, "s", small)
	for w := range uint64(2) {
		reg := seq.WorkerRegister("s", 0, w)
		session := seq.NewSession()
		c.group.Prepare(t.Context(), session, []quorum.PrepareItem{{Register: reg, Round: 1, Create: true}})
		far := uint64(c.wall.Load() + (10 * time.Minute).Milliseconds())
		if out := c.group.Step(t.Context(), session, []quorum.StepItem{{Register: reg, Round: 1, Max: far}})[0]; out.State != quorum.Won {
			t.Fatal(out.Err)
		}
	}
	if _, _, err := n.gen("s", 1); !errors.Is(err, seq.ErrWorkersExhausted) || !strings.Contains(err.Error(), "2 of 2 held") {
		t.Errorf("got %v, want %v", err, seq.ErrWorkersExhausted)
	}
	n.jump(-time.Hour) // no right clock knows such marks
	eventually(t, "the clock is found to be off", func() bool { _, _, err := n.gen("s", 1); return errors.Is(err, seq.ErrClockOff) })
	n.offset.Store(0)
	c.pass(11 * time.Minute)
	eventually(t, "ids once the clock is there", func() bool { _, _, err := n.gen("s", 1); return err == nil })
}

func TestAQuickRestartWaitsForTheMarkInsteadOfRefusing(t *testing.T) {
	c := newCluster(t)
	zero := snowflake.Worker(0)
	static := func(cfg *Config) { cfg.Node.Worker = &zero }
	a := c.start("a", static)
	ids, _ := a.must("", 1)
	if _, _, err := c.start("b", static).gen("", 1); !errors.Is(err, seq.ErrWorkersExhausted) {
		t.Errorf("a worker id that is held: got %v, want %v", err, seq.ErrWorkersExhausted)
	}
	a.leave()
	again, got := c.start("a", static).must("", 1)
	if got.Worker != 0 || again[0] <= ids[0] {
		t.Errorf("got id %d of worker %d after %d", again[0], got.Worker, ids[0])
	}
}

func TestBorrowedTimeDoesNotRunAwayFromTheClock(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	// 16 IDs a second, which are asked for by the hundred.
	c.add(n, "b", "time:40,worker:4,sequence:4;unit=1s;epoch=2020-01-01T00:00:00Z;overflow=borrow")
	n.must("b", 100)
	l := n.lease("b")
	for range 10 {
		if _, _, err := n.genWithin(500*time.Millisecond, "b", 100); err != nil {
			break
		}
	}
	if ahead := l.Mark().Time().Sub(time.UnixMilli(c.wall.Load())); ahead > 10*workers.DefaultWindow {
		t.Errorf("confirmed %v ahead of the clock", ahead)
	}
	// Without a processor for as long as that, a call finds its deadline before all else.
	eventually(t, "overloaded and the deadline, at the end of its reach", func() bool {
		_, _, err := n.genWithin(300*time.Millisecond, "b", 1000)
		return errors.Is(err, seq.ErrOverloaded) && errors.Is(err, context.DeadlineExceeded)
	})
	c.pass(2 * time.Minute)
	n.must("b", 100)
}

// A caller that waits for an hour's worth of clock would only find its deadline.
func TestABorrowerWhoseClockMovedFarBackIsRefusedAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCluster(t)
		n := c.start("a")
		c.add(n, "b", "time:43,worker:4,sequence:2;epoch=2020-01-01T00:00:00Z;rollback=borrow")
		n.must("b", 1)
		n.jump(-time.Hour)
		start := time.Now()
		var err error
		for range 100 { // each takes most of what is left of the window
			if _, _, err = n.gen("b", 1000); err != nil {
				break
			}
		}
		if !errors.Is(err, seq.ErrClockRollback) || !strings.Contains(err.Error(), "before that") {
			t.Errorf("with the window borrowed: got %v, want %v", err, seq.ErrClockRollback)
		}
		if waited := time.Since(start); waited > time.Second {
			t.Errorf("the refusal took %v", waited)
		}
		n.offset.Store(0)
		c.pass(time.Minute)
		n.must("b", 1)
	})
}

func TestADatacenterIDOfAnotherNameIsRefused(t *testing.T) {
	c := newCluster(t)
	at := func(id snowflake.Datacenter, name string) func(*Config) {
		return func(c *Config) { c.Node.Datacenter = namespaces.Datacenter{ID: id, Name: name} }
	}
	cn := c.start("cn", at(1, "cn"))
	cn.must("1", 1)
	for k, wrong := range []func(*Config){at(1, "sg"), at(2, "cn"), at(1, "")} {
		n := c.start(fmt.Sprint("wrong-", k), wrong)
		if err := <-n.done; !errors.Is(err, seq.ErrDatacenterTaken) {
			t.Errorf("%d: Run returned %v, want %v", k, err, seq.ErrDatacenterTaken)
		}
		if _, _, err := n.gen("1", 1); err == nil {
			t.Errorf("%d: got ids all the same", k)
		}
	}
	sg := c.start("sg", at(2, "sg"))
	if ids, _ := sg.must("1", 1); parts(t, "regional", ids[0]).Datacenter != 2 {
		t.Errorf("got %+v", parts(t, "regional", ids[0]))
	}
	if _, _, err := c.start("far", at(8, "far")).gen("1", 1); !errors.Is(err, seq.ErrNodeUnfit) {
		t.Errorf("datacenter 8 of 3 bits: got %v, want %v", err, seq.ErrNodeUnfit)
	}
	c.start("far again", at(3, "far")).must("1", 1) // an id that cannot be is bound to no name
}

func TestAChangedPolicyIsTakenInAndNoIDRepeated(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	ns := c.add(n, "s", small)
	before, _ := n.must("s", 10)
	if _, err := n.svc.Load().names.Put(t.Context(), namespaces.Edit{Name: "s", Rollback: "borrow", Version: ns.Version}); err != nil {
		t.Fatal(err)
	}
	after, _ := n.must("s", 10)
	for _, id := range after {
		if slices.Contains(before, id) {
			t.Errorf("id %d twice", id)
		}
	}
	l := n.lease("s")
	if got := l.Namespace.Layout.Policy().Rollback; got != snowflake.RollbackBorrow {
		t.Errorf("got rollback %v", got)
	}
}

func TestALayoutThatRanOutRefusesByName(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	c.addEnded(n, "old", "baidu")
	if _, _, err := n.gen("old", 1); !errors.Is(err, seq.ErrTimeExhausted) {
		t.Errorf("got %v, want %v", err, seq.ErrTimeExhausted)
	}
	if got := n.gauge("seq_snowflake_layout_ends_soon", "old"); got != 1 {
		t.Errorf("its end is not in the metrics: got %v", got)
	}
}

func TestBadNamesAndCountsAreRefusedByName(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	for _, row := range []struct {
		ref   namespaces.Ref
		count int
		want  error
	}{
		{namespaces.Ref{Name: "moon"}, 1, seq.ErrUnknownNamespace},
		{namespaces.Ref{Name: "7"}, 1, seq.ErrUnknownNamespace},
		{namespaces.Ref{Alias: 7}, 1, seq.ErrUnknownNamespace},
		{namespaces.Ref{Name: "default", Alias: 1}, 1, seq.ErrUnknownNamespace},
		{namespaces.Ref{}, 0, seq.ErrBadCount},
		{namespaces.Ref{}, seq.MaxIDs + 1, seq.ErrBadCount},
	} {
		if _, err := n.svc.Load().Generate(t.Context(), row.ref, row.count); !errors.Is(err, row.want) {
			t.Errorf("%+v, %d: got %v, want %v", row.ref, row.count, err, row.want)
		}
	}
	if _, err := n.svc.Load().Generate(t.Context(), namespaces.Ref{Name: "regional-1", Alias: 1}, seq.MaxIDs); err != nil {
		t.Errorf("both names of one, and the largest count: %v", err)
	}
}

func TestAConfigurationThatCannotWorkIsRefused(t *testing.T) {
	c := newCluster(t)
	good := Config{Documents: c.group, Config: workers.Config{Holder: &ownership.Holder{Session: 1, Registers: c.group, Leases: &keeper{}}, ReadPrefix: c.group.ReadPrefix, Sessions: (&keeper{}).Sessions}}
	offered := c.start("a").svc.Load().names.Known().All
	for name, change := range map[string]func(*Config){
		"no stores":            func(c *Config) { c.Holder = nil },
		"no documents":         func(c *Config) { c.Documents = nil },
		"no session":           func(c *Config) { c.Holder = &ownership.Holder{Registers: c.Holder.Registers, Leases: c.Holder.Leases} },
		"a short window":       func(c *Config) { c.Window = time.Millisecond },
		"a name with a slash":  func(c *Config) { c.Node.Datacenter.Name = "cn/1" },
		"a namespace no name":  func(c *Config) { c.Namespaces = []namespaces.Namespace{{Layout: offered[0].Layout}} },
		"a namespace no bits":  func(c *Config) { c.Namespaces = []namespaces.Namespace{{Name: "x"}} },
		"two of the same name": func(c *Config) { c.Namespaces = append(offered, offered...) },
	} {
		cfg := good
		change(&cfg)
		if _, err := New(cfg); !errors.Is(err, seq.ErrBadArgument) && !errors.Is(err, seq.ErrBadLayout) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}

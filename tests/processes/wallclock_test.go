package processes

import (
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// unnoticed are the callers of a cluster in which one wall clock is wrong.
type unnoticed struct {
	t    *testing.T
	c    *client.Client
	last map[string]seq.Seq
	ids  map[int64]string
}

// ask takes numbers of an ordinary and an exact space, and IDs of every allocator. Each call succeeds, exact
// numbers follow each other, and nothing repeats.
func (u *unnoticed) ask(when string) {
	u.t.Helper()
	for range 20 {
		for _, space := range []string{"user", "orders"} {
			got, err := u.c.Next(harness.Within(u.t), client.Key{Space: space, UID: 7})
			switch {
			case err != nil:
				u.t.Fatalf("%s: %s: %v", when, space, err)
			case got <= u.last[space], space == "orders" && got != u.last[space]+1:
				u.t.Fatalf("%s: %s: %d after %d", when, space, got, u.last[space])
			}
			u.last[space] = got
		}
		id, err := u.c.NextID(harness.Within(u.t), "")
		if err != nil {
			u.t.Fatalf("%s: IDs: %v", when, err)
		}
		if before, twice := u.ids[int64(id)]; twice {
			u.t.Fatalf("%s: id %d came %s already", when, id, before)
		}
		u.ids[int64(id)] = when
	}
}

// One process of a cluster has a wrong wall clock, and its clock is set right again. Callers never notice, and
// status names the clock while it is wrong.
func TestOneWrongWallClockIsNamedAndNoCallerNotices(t *testing.T) {
	var clocks *harness.WallClocks
	c := start(t, func(cfg *localcluster.Config) {
		clocks = harness.UseWallClocks(t, cfg)
		cfg.Allocs, cfg.Spaces = 2, []string{"orders:sections=8,mode=exact,window=10m"}
		harness.AskOnce(cfg)
	})
	sdk, err := client.New(harness.Within(t), client.Config{Addrs: c.Addrs(localcluster.RoleAlloc), Timeout: attempt})
	if err != nil {
		t.Fatal(err)
	}
	defer sdk.Close()
	u := &unnoticed{t, sdk, map[string]seq.Seq{}, map[int64]string{}}
	u.ask("at first")
	status := func(text string) bool {
		got := run(t, "seqctl", "status", "-o", "json", "--addr", c.GRPC())
		return strings.Contains(got.Stdout, text)
	}
	store, alloc := c.Processes(localcluster.RoleStore)[2], c.Processes(localcluster.RoleAlloc)[1]
	for _, wrong := range []struct {
		p       *localcluster.Process
		ahead   time.Duration
		restart bool
		shown   string
	}{
		{store, 20 * time.Minute, false, "clock of store " + store.Name + " is 20m0s ahead"},
		{store, -48 * time.Hour, true, "clock of store " + store.Name + " is 48h0m0s behind"},
		{alloc, 20 * time.Minute, true, "clock of alloc " + alloc.Name + " is 20m0s ahead"},
		{alloc, -20 * time.Minute, false, "clock of alloc " + alloc.Name + " is 20m0s behind"},
	} {
		t.Log(time.Now().Format(time.TimeOnly), wrong.shown)
		clocks.Set(wrong.p.Name, wrong.ahead)
		u.ask("at the jump")
		harness.Until(t, wrong.shown, func() bool { return status(wrong.shown) })
		u.ask("while " + wrong.shown)
		if wrong.restart {
			if err := wrong.p.Restart(harness.Within(t)); err != nil {
				t.Fatal(err)
			}
			u.ask("after a restart while " + wrong.shown)
		}
		clocks.Set(wrong.p.Name, 0)
		u.ask("set right")
		harness.Until(t, "status without a clock", func() bool { return !status("clock of ") })
		u.ask("right")
	}
}

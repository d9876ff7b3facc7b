package globalid

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

func TestAClockThatWasAheadStopsNoOtherNodeAndNoIDOnceItIsRight(t *testing.T) {
	for _, ahead := range []time.Duration{5 * time.Second, time.Minute, 14 * time.Minute, 16 * time.Minute, 30 * time.Minute, 59 * time.Minute, 2 * time.Hour, 400 * 24 * time.Hour} {
		for _, rollback := range []string{"refuse", "wait:5ms", "borrow"} {
			t.Run(fmt.Sprint(ahead, " ", rollback), func(t *testing.T) {
				c := newCluster(t)
				n, other := c.start("a"), c.start("b")
				c.add(n, "s", "time:41,worker:5,sequence:12;epoch=1700000000000;rollback="+rollback)
				book := newLedger(t)
				take := func(n *node) (issue, error) {
					ids, got, err := n.genWithin(time.Second, "s", 10)
					book.add("s", n.name, ids)
					return got, err
				}
				mustTake := func(n *node, when string) {
					t.Helper()
					if _, err := take(n); err != nil {
						t.Errorf("%s, %s: %v", n.name, when, err)
					}
				}
				mustTake(n, "before")
				mustTake(other, "before")
				n.offset.Store(ahead.Milliseconds())
				for range 3 {
					if _, err := take(n); (err == nil) != (ahead < workersAhead) || err != nil && !errors.Is(err, seq.ErrClockOff) {
						t.Errorf("ahead: got %v", err)
					}
					mustTake(other, "while the other clock is ahead")
					mustTake(c.start("new"), "while the other clock is ahead")
					c.pass(time.Second)
				}
				n.offset.Store(0)
				if ahead < time.Minute {
					c.pass(20 * time.Second) // it is waited for, as the policy says
				}
				eventually(t, "IDs once the clock is right", func() bool { _, err := take(n); return err == nil })
				mustTake(other, "later")
				mustTake(c.start("newest"), "later")
			})
		}
	}
}

// A clock that is workersAhead ahead gets no marks from the stores, because a mark is a window ahead of the
// clock.
const workersAhead = storeAhead - workers.DefaultWindow

func TestAWorkerIDIsGivenUpForAnotherOnlyIfTheClockIsKnownToBeRight(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*Config)
	}{
		{"the clocks of the stores are not known", func(cfg *Config) { cfg.ClockAhead = nil }},
		{"the clock is the one that is off", func(cfg *Config) {
			cfg.ClockAhead = func() (time.Duration, bool) { return -2 * time.Minute, true }
		}},
		{"the node is bound to one worker id", func(cfg *Config) { w := snowflake.Worker(3); cfg.Node.Worker = &w }},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCluster(t)
			n := c.start("a", row.change)
			n.jump(5 * time.Minute)
			_, before := n.must("", 1)
			n.offset.Store(0)
			if _, got, err := n.gen("", 1); !errors.Is(err, seq.ErrClockRollback) {
				t.Errorf("got an ID of worker %d after one of %d, and %v, want %v", got.Worker, before.Worker, err, seq.ErrClockRollback)
			}
			c.leap(5 * time.Minute)
			if _, got := n.must("", 1); got.Worker != before.Worker {
				t.Errorf("got worker %d, want %d", got.Worker, before.Worker)
			}
		})
	}
}

func TestAClockThatGoesToAndFroLeavesWorkerIDsForOthers(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	c.add(n, "s", "time:41,worker:3,sequence:12;epoch=1700000000000")
	used := map[snowflake.Worker]bool{}
	for range 20 {
		n.offset.Store((10 * time.Minute).Milliseconds())
		if _, got, err := n.gen("s", 1); err == nil {
			used[got.Worker] = true
		}
		n.offset.Store(0)
		if _, got, err := n.gen("s", 1); err == nil {
			used[got.Worker] = true
		} else if !errors.Is(err, seq.ErrClockRollback) {
			t.Fatal(err)
		}
	}
	if len(used) < 3 || len(used) > 6 {
		t.Errorf("it used %d worker ids of 8 up", len(used))
	}
	c.start("b").must("s", 1)
}

func TestANodeWhoseClockIsFarBehindTakesNoWorkerID(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	n.jump(-11 * time.Minute)
	if _, _, err := n.gen("", 1); !errors.Is(err, seq.ErrClockOff) {
		t.Errorf("got %v, want %v", err, seq.ErrClockOff)
	}
	k := &client{c: c, name: "k", book: newLedger(t)}
	if _, err := k.ask(n, ""); !errors.Is(err, seq.ErrClockOff) {
		t.Errorf("a client: got %v, want %v", err, seq.ErrClockOff)
	}
	n.offset.Store(-(9 * time.Minute).Milliseconds())
	eventually(t, "IDs within the tolerance", func() bool { _, _, err := n.gen("", 1); return err == nil })
}

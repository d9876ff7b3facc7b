package globalid

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// saved returns the stores' registers of worker ids.
func (c *cluster) saved() map[seq.Register]acceptor.State {
	out := map[seq.Register]acceptor.State{}
	for _, s := range c.stores {
		for _, st := range s.dump() {
			if st.Register.Kind() == seq.KindWorker && st.Max >= out[st.Register].Max {
				out[st.Register] = acceptor.State{Promised: st.Promised, Accepted: st.Accepted, Max: st.Max}
			}
		}
	}
	return out
}

// restored returns the cluster of a new era: of what was saved, with floors as far beyond the
// clock as its stores take marks. The old one's stores are gone.
func (c *cluster) restored(t *testing.T, saved map[seq.Register]acceptor.State) *cluster {
	t.Helper()
	next := newCluster(t)
	next.wall.Store(c.wall.Load())
	for _, s := range next.stores {
		registers := map[seq.Register]acceptor.State{}
		for _, r := range seq.FixedRegisters() {
			registers[r] = acceptor.State{}
		}
		for r, st := range saved {
			st.Promised = seq.Epoch{Round: st.Promised.Round + 1, Session: 1}
			registers[r] = st
		}
		a, err := acceptor.New(acceptor.Config{Registers: registers, MaxLease: 10 * time.Second, Floors: c.floors()})
		if err != nil {
			t.Fatal(err)
		}
		s.replace(a)
	}
	return next
}

func (c *cluster) floors() quorum.Floors {
	return quorum.Floors{Worker: uint64(c.wall.Load() + storeAhead.Milliseconds())}
}

// registers returns the number of worker registers at the stores.
func (c *cluster) registers() int { return len(c.saved()) }

func TestNoIDComesTwiceAfterARestoreWhetherTheBackupKnewTheWorkerIDOrNot(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("known %v", known), func(t *testing.T) {
			old := newCluster(t)
			empty := old.saved()
			a := old.start("a")
			book := newLedger(t)
			ids, _ := a.must("", 100)
			book.add("default", "a", ids)
			k := &client{c: old, name: "k", book: book}
			if got := k.must(a, ""); got.ConfirmedUnixMs <= uint64(old.wall.Load()) {
				t.Fatalf("got %v", got)
			}
			k.drain(100)
			backup := empty
			if known {
				backup = old.saved()
			}
			a.kill()

			c := old.restored(t, backup)
			had := c.registers()
			b := c.start("b")
			heir := &client{c: c, name: "heir", book: book}
			before := k.last
			for range 3 { // the whole of the window, the client of before goes on, by its own
				_, _, err := b.gen("", 1)
				if !errors.Is(err, seq.ErrWorkersKept) || !strings.Contains(err.Error(), "until ") {
					t.Fatalf("a node: got %v, want %v", err, seq.ErrWorkersKept)
				}
				if _, err := heir.ask(b, ""); !errors.Is(err, seq.ErrWorkersKept) {
					t.Fatalf("a client: got %v, want %v", err, seq.ErrWorkersKept)
				}
				again := &client{c: c, name: "k", book: book, last: before}
				if _, err := again.ask(b, ""); !errors.Is(err, seq.ErrWorkersKept) {
					t.Fatalf("the client that names its window: got %v, want %v", err, seq.ErrWorkersKept)
				}
				if got := c.registers(); got != had {
					t.Fatalf("%d registers were made for nothing", got-had)
				}
				k.drain(100)
				c.leap(3 * time.Minute)
				old.wall.Store(c.wall.Load())
			}
			c.leap(storeAhead - 9*time.Minute)
			eventually(t, "worker ids are given out again, by themselves", func() bool {
				got, _, err := b.gen("", 100)
				if err == nil {
					book.add("default", "b", got)
				}
				return err == nil
			})
			heir.must(b, "")
			heir.drain(100)
		})
	}
}

func TestAFloorThatIsLoweredAtOneStoreAloneStillKeepsWorkerIDsBack(t *testing.T) {
	c := newCluster(t)
	for _, s := range c.stores {
		s.setFloors(c.floors())
	}
	n := c.start("a", func(c *Config) { w := snowflake.Worker(3); c.Node.Worker = &w })
	if _, _, err := n.gen("", 1); !errors.Is(err, seq.ErrWorkersKept) {
		t.Errorf("a worker id from outside: got %v, want %v", err, seq.ErrWorkersKept)
	}
	low := quorum.Floors{Worker: uint64(c.wall.Load())}
	c.stores[0].setFloors(low)
	c.pass(time.Second)
	if _, _, err := n.gen("", 1); !errors.Is(err, seq.ErrWorkersKept) {
		t.Errorf("one of three lowered: got %v, want %v", err, seq.ErrWorkersKept)
	}
	c.stores[1].setFloors(low)
	c.stores[2].setFloors(low)
	c.pass(time.Second)
	eventually(t, "the worker id is taken", func() bool { _, _, err := n.gen("", 1); return err == nil })
}

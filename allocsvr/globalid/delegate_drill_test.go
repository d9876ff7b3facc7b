package globalid

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Every client uses up all that it is granted, in windows of which every node takes
// worker ids as well, so any two that overlap by one tick show.
func TestNoIDTwiceOverDelegationsLostRepliesDeathsAndTakeovers(t *testing.T) {
	const rounds = 12
	rnd := rand.New(rand.NewPCG(seedOf(t), 2))
	c := newCluster(t)
	book := newLedger(t)
	nodes := []*node{c.start("a"), c.start("b"), c.start("c")}
	c.add(nodes[0], "s", coarse)
	var clients []*client
	for i := range 5 {
		clients = append(clients, &client{c: c, name: fmt.Sprint("client-", i), book: book, slow: time.Duration(i%2) * 8 * time.Minute})
	}
	windows := make(chan bool, rounds*len(clients)) // of each: whether it continues one
	returns := 0
	for round := range rounds {
		c.fail(fault(rnd.IntN(3)), rnd.IntN(3))
		if round%4 == 2 {
			c.fail(fault(1+rnd.IntN(2)), 0, 1)
		}
		var wg sync.WaitGroup
		for _, k := range clients {
			// Each asks of one node or of two at once, and may miss what the first says.
			at, other := nodes[rnd.IntN(3)], nodes[rnd.IntN(3)]
			if rnd.IntN(4) == 0 {
				req := k.request("s")
				wg.Go(func() { complain(t, k.name, second(other.delegate(req))) })
			}
			some := []int{20, all}[rnd.IntN(2)]
			wg.Go(func() {
				got, err := k.ask(at, "s")
				complain(t, k.name, err)
				if err == nil {
					k.drain(some)
					windows <- got.Continues
				}
			})
		}
		for _, n := range nodes {
			wg.Go(func() {
				// Not for long: with two faulty stores there is nothing to wait for.
				ids, got, err := n.genWithin(500*time.Millisecond, "s", 5)
				complain(t, n.name, err)
				book.add("s", fmt.Sprintf("%s worker %d", n.name, got.Worker), ids)
			})
		}
		wg.Wait()
		c.fail(works, 0, 1, 2)
		// Some clients give back, to the node that lent or to another, and one gives back twice. Then other
		// clients ask at once, and the clients that gave back begin again.
		for _, k := range clients {
			if k.last == nil || rnd.IntN(2) == 0 {
				continue
			}
			at := nodes[rnd.IntN(3)]
			if rnd.IntN(4) > 0 {
				at = nodes[slices.IndexFunc(nodes, func(n *node) bool { return n.name == k.last.Node })]
			}
			if err := k.giveBack(at); err == nil {
				returns++
				complain(t, k.name, k.giveBack(at))
			} else if !errors.Is(err, seq.ErrConflict) {
				t.Errorf("%s gives back: %v", k.name, err)
			}
			k.last, k.gen = nil, nil
		}
		dead := rnd.IntN(3)
		nodes[dead].kill()
		nodes[dead] = c.start(nodes[dead].name)
		c.leap([]time.Duration{time.Second, 2 * time.Minute, 8 * time.Minute, 15 * time.Minute}[rnd.IntN(4)])
	}
	close(windows)
	continued, apart := 0, 0
	for continues := range windows {
		if continues {
			continued++
		} else {
			apart++
		}
	}
	if continued == 0 || apart == 0 || returns == 0 || book.n < 1000 {
		t.Errorf("%d ids, %d windows continued, %d apart, %d given back: not much of a drill", book.n, continued, apart, returns)
	}
}

func second[A any](_ A, err error) error { return err }

func complain(t *testing.T, who string, err error) {
	if err != nil && !isExpected(err) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: %v", who, err)
	}
}

// The pool has two worker ids, so attempts of one session meet at the same register all
// the time. Had two the same epoch, both would be granted its window.
func TestAttemptsOfOneNodeNeverShareAnEpoch(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	c.add(n, "s", "time:40,worker:1,sequence:1;unit=1s;epoch=1700000000000;overflow=borrow;rollback=borrow")
	book := newLedger(t)
	for round := range 20 {
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				k := &client{c: c, name: fmt.Sprint("client-", i), book: book}
				if _, err := k.ask(n, "s"); err == nil {
					k.drain(all)
				} else if !errors.Is(err, seq.ErrWorkersExhausted) && !errors.Is(err, seq.ErrOverloaded) {
					t.Errorf("%s: %v", k.name, err)
				}
			})
		}
		if round%2 == 1 {
			wg.Go(func() {
				if ids, got, err := n.genWithin(time.Second, "s", 5); err == nil {
					book.add("s", fmt.Sprintf("the node, worker %d", got.Worker), ids)
				}
			})
		}
		wg.Wait()
		if l := n.lease("s"); l != nil {
			// Given up by a change of policy, so that the next round takes one again.
			want := namespaces.Edit{Name: "s", Rollback: "borrow", Version: l.Namespace.Version}
			if l.Namespace.Layout.Policy().Rollback == snowflake.RollbackBorrow {
				want.Rollback = "refuse"
			}
			if _, err := n.svc.Load().names.Put(t.Context(), want); err != nil || n.lease("s") != nil {
				t.Errorf("given up: %v", err)
			}
		}
		c.leap(11 * time.Minute)
	}
	if book.n < 1000 {
		t.Errorf("only %d ids", book.n)
	}
}

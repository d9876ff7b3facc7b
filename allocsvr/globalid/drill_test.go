package globalid

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// ledger collects all IDs that were ever handed out.
type ledger struct {
	t    *testing.T
	mu   sync.Mutex // guards ids
	seen map[string]map[snowflake.ID]string
	n    int
}

func (l *ledger) add(namespace, who string, ids []snowflake.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[namespace] == nil {
		l.seen[namespace] = map[snowflake.ID]string{}
	}
	for _, id := range ids {
		if before, ok := l.seen[namespace][id]; ok {
			l.t.Errorf("namespace %s: id %d twice, by %s and by %s", namespace, id, before, who)
		}
		l.seen[namespace][id] = who
		l.n++
	}
}

// expected are the errors that a drill may meet.
var expected = []error{
	seq.ErrWorkersExhausted, seq.ErrClockOff, seq.ErrClockRollback, seq.ErrOverloaded, seq.ErrShuttingDown,
	seq.ErrNoQuorum, seq.ErrNoLease,
	seq.ErrNoRoute, // of several Sets: the root does not answer
}

var jumps = []time.Duration{
	time.Millisecond, -time.Millisecond, 5 * time.Millisecond, -5 * time.Millisecond, time.Second, -time.Second,
	time.Hour, -time.Hour, 365 * 24 * time.Hour, -365 * 24 * time.Hour,
}

// policies has a namespace for each pair of policies, with pools of eight worker ids.
func policies(c *cluster, n *node) []string {
	var names []string
	for _, overflow := range []string{"wait", "refuse", "borrow"} {
		for _, rollback := range []string{"refuse", "wait:5ms", "borrow"} {
			name := overflow + "-" + strings.TrimSuffix(rollback, ":5ms")
			c.add(n, name, "time:43,worker:3,sequence:6;epoch=1700000000000;overflow="+overflow+";rollback="+rollback)
			names = append(names, name)
		}
	}
	return names
}

// In virtual time, since a caller of a borrower at the end of its reach may wait for as
// long as it has patience. SEED gives another run than the kept one.
func TestNoIDTwiceOverKillsRestartsClockJumpsAndExhaustion(t *testing.T) {
	bubble.Test(t, killsRestartsClockJumpsAndExhaustion)
}

func killsRestartsClockJumpsAndExhaustion(t *testing.T) {
	const rounds = 40
	rnd := rand.New(rand.NewPCG(seedOf(t), 1))
	c := newCluster(t)
	c.pauses = bubble.NewClock()
	book := &ledger{t: t, seen: map[string]map[snowflake.ID]string{}}
	var living []*node
	for i := range 4 {
		living = append(living, c.start(fmt.Sprint("alloc-", i)))
	}
	names := policies(c, living[0])
	exhausted := 0
	for round := range rounds {
		// A clock jumps, stays wrong over the next rounds, and is set right at some time.
		jumper := living[rnd.IntN(len(living))]
		if jumper.offset.Load() != 0 && rnd.IntN(2) == 0 {
			jumper.offset.Store(0)
		} else {
			jumper.jump(jumps[(round+rnd.IntN(2))%len(jumps)])
		}
		faulty := rnd.IntN(3)
		c.fail(fault(rnd.IntN(3)), faulty)
		exhausted += burst(book, living, names)
		c.fail(works, 0, 1, 2)

		// One goes, cleanly or not, and comes back with the clock that it had.
		k := rnd.IntN(len(living))
		old := living[k]
		if rnd.IntN(2) == 0 {
			old.leave()
		} else {
			old.kill()
		}
		again := c.start(old.name)
		again.offset.Store(old.offset.Load())
		living[k] = again
		exhausted += burst(book, living, names)

		if round%5 == 3 { // more nodes than worker ids
			for i := range 6 {
				living = append(living, c.start(fmt.Sprint("more-", round, "-", i)))
			}
			exhausted += burst(book, living, names)
			for _, n := range living[4:] {
				n.kill()
			}
			living = living[:4]
		}
		c.pass(2 * testLease)
		exhausted += burst(book, living, names)
	}
	for _, n := range living { // and all is well again once the clocks are
		n.offset.Store(0)
	}
	c.leap(2 * storeAhead)
	for _, name := range names {
		eventually(t, "IDs of "+name+" once the clocks are right", func() bool {
			ids, _, err := living[0].gen(name, 50)
			book.add(name, living[0].name, ids)
			return err == nil
		})
	}
	if exhausted == 0 {
		t.Error("the pool was never exhausted")
	}
	if book.n < rounds*len(names)*50 {
		t.Errorf("only %d ids handed out", book.n)
	}
	t.Logf("%d ids, %d times exhausted", book.n, exhausted)
}

// seedOf returns the kept seed of a drill, or another that SEED gives.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(1)
	if s := os.Getenv("SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("SEED: %v", err)
		}
	}
	t.Logf("seed %d", seed)
	return seed
}

// burst has all nodes hand out IDs of all namespaces at once, and returns how often a
// pool was exhausted.
func burst(book *ledger, nodes []*node, names []string) (exhausted int) {
	var wg sync.WaitGroup
	var mu sync.Mutex // guards exhausted
	for _, n := range nodes {
		for _, name := range names {
			wg.Go(func() {
				for _, count := range []int{1, 40, 7} {
					ids, got, err := n.gen(name, count)
					if err == nil {
						book.add(name, fmt.Sprintf("%s %s worker %d", n.name, n.session, got.Worker), ids)
						continue
					}
					if errors.Is(err, seq.ErrWorkersExhausted) {
						mu.Lock()
						exhausted++
						mu.Unlock()
					}
					if !isExpected(err) {
						book.t.Errorf("%s: %v", n.name, err)
					}
				}
			})
		}
	}
	wg.Wait()
	return exhausted
}

func isExpected(err error) bool {
	for _, e := range expected {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

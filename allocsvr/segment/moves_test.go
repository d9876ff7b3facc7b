package segment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

func TestNoNumberIsHandedOutTwiceUnderFaultsAndMoves(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1)) // guarded by f.mu
	t.Logf("seed %d", seed)
	bubble.Test(t, func(t *testing.T) {
		f := newStores(bubble.NewClock())
		f.draw = func() fault {
			if rnd.IntN(4) > 0 {
				return none
			}
			return fault(1 + rnd.IntN(3))
		}
		var live [3]atomic.Pointer[node]
		for i := range live {
			live[i].Store(newNode(t, f, seq.Session(i+1)))
		}
		live[0].Load().put(t, Tag{Name: "order", MinStep: 10, MaxStep: 80})
		h := history{stores: f}
		var wg sync.WaitGroup
		for g := range 6 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(10+g)))
				for range 300 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rnd.IntN(300))*time.Millisecond)
					err := h.take(ctx, live[rnd.IntN(3)].Load(), "order", uint32(1+rnd.IntN(30)))
					cancel()
					if err != nil && !retryable(err) {
						t.Errorf("seed %d: %v", seed, err)
						return
					}
					time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		disturb(t, f, &live, done, rand.New(rand.NewPCG(seed, 2)))
		h.check(t)
		if len(h.took) < 200 {
			t.Errorf("seed %d: only %d of 1800 requests were served", seed, len(h.took))
		}
	})
}

// disturb moves the tag, loses and releases it, and replaces nodes as a crash or a
// restart does, until done.
func disturb(t *testing.T, f *fakeStores, live *[3]atomic.Pointer[node], done <-chan struct{}, rnd *rand.Rand) {
	next := seq.Session(10)
	owner := 0
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Duration(20+rnd.IntN(200)) * time.Millisecond):
		}
		n := live[owner].Load()
		switch rnd.IntN(5) {
		case 0:
			f.flush()
		case 1: // told that the lease is lost
			n.Lost(seq.TagRegister("order"), f.state("order").promised.Round)
		case 2: // in order
			if err := n.Release(t.Context()); err != nil {
				t.Error(err)
			}
			fallthrough
		case 3: // crash
			f.expire(n.session, 100*time.Millisecond)
			if err := n.stop(); err != nil {
				t.Error(err)
			}
			live[owner].Store(newNode(t, f, next))
			next++
		default: // the table changes, and not everybody sees it at once
			owner = rnd.IntN(3)
			for i := range live {
				live[i].Load().mine.Store(i == owner || rnd.IntN(4) == 0)
			}
		}
	}
}

func TestManyCallersAtOnceShareNoNumber(t *testing.T) {
	f := newStores(clock.Boot())
	n := newNode(t, f, 1)
	n.put(t, Tag{Name: "order", MinStep: 50, MaxStep: 400})
	h := history{stores: f}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range 200 {
				if err := h.take(patient(t), n, "order", uint32(1+i%7)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	h.check(t)
	if got := len(h.took); got != 3200 {
		t.Errorf("%d of 3200 requests were served", got)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stepped > 3200 {
		t.Errorf("%d steps for 3200 requests", f.stepped)
	}
}

func TestWithoutAQuorumATakeDoesNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		n.must(t, "order", 1)
		n.put(t, Tag{Name: "never", MinStep: 1, MaxStep: 1})
		away := fmt.Errorf("%w: missing store-2, store-3", seq.ErrNoQuorum)
		n.away.Store(&away)
		f.expire(n.session, 0)
		time.Sleep(time.Second)
		begun := time.Now()
		for _, tag := range []string{"order", "never"} {
			if _, err := n.Take(patient(t), tag, 1); !errors.Is(err, away) {
				t.Errorf("%s: got %v, want %v", tag, err, away)
			}
		}
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("waited for %v", waited)
		}
		n.away.Store(nil)
		f.expire(n.session, time.Hour)
		n.must(t, "never", 1)
	})
}

func TestATakeThatWaitsLearnsThatTheQuorumIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		other := newNode(t, f, 2)
		other.must(t, "order", 1) // it has the lease
		got := make(chan error, 1)
		go func() {
			_, err := n.Take(patient(t), "order", 1)
			got <- err
		}()
		synctest.Wait()
		away := fmt.Errorf("%w: missing store-2, store-3", seq.ErrNoQuorum)
		n.away.Store(&away)
		begun := time.Now()
		if err := <-got; !errors.Is(err, away) {
			t.Errorf("got %v, want %v", err, away)
		}
		if waited := time.Since(begun); waited > lookAgain {
			t.Errorf("waited for another %v, want at most %v", waited, lookAgain)
		}
	})
}

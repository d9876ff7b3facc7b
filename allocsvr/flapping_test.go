package allocsvr

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/nodes"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// starvation delays the renewals of whole nodes for random times, like a machine that has no time for them.
// No node is dead, and leases end before they are renewed.
type starvation struct {
	which  string        // names of nodes
	most   time.Duration // a node gets through again after up to so much
	random *rand.Rand

	mu   sync.Mutex // guards on, next and random
	on   bool
	next map[string]time.Time // when a node gets through
}

func (s *starvation) set(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
}

func (s *starvation) wait(node string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.on || !strings.Contains(s.which, node) {
		return 0
	}
	if s.next[node].Before(time.Now()) {
		s.next[node] = time.Now().Add(time.Duration(s.random.Int64N(int64(s.most))))
	}
	return time.Until(s.next[node])
}

// late is a store as a starving node's renewals see it.
type late struct {
	quorum.Store
	*starvation
	node string
}

var errStarved = errors.New("no time for it")

func (l late) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {
	time.Sleep(l.wait(l.node))
	if ctx.Err() != nil {
		return quorum.RenewReply{}, errStarved
	}
	return l.Store.Renew(ctx, req)
}

// starving is a fleet of three in virtual time; which of them starve once s is set.
func starving(t *testing.T, which string, most time.Duration) (f *fleet, a, b, c *node, s *starvation) {
	t.Helper()
	s = &starvation{which: which, most: most, random: rand.New(rand.NewPCG(1, 2)), next: map[string]time.Time{}}
	f = newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 32, Step: 100})
	f.renews = func(node string, store quorum.Store) quorum.Store { return late{store, s, node} }
	a, b, c = f.start("a", 3, ""), f.start("b", 3, ""), f.start("c", 3, "")
	f.serving(a, b, c)
	return f, a, b, c, s
}

func takeovers(nodes ...*node) (n uint64) {
	for _, m := range nodes {
		n += m.Takeovers()
	}
	return n
}

// takenOver returns the time from a's death until the other nodes serve all its sections.
func takenOver(f *fleet, a, b, c *node) time.Duration {
	f.t.Helper()
	f.until("a has sections", func() bool { return len(a.Owned()) > 0 })
	time.Sleep(5 * f.lease) // and no hand-over is under way
	a.kill()
	dead := f.clock.Now()
	f.mu.Lock()
	delete(f.nodes, "a")
	f.mu.Unlock()
	f.serving(b, c)
	return f.clock.Now() - dead
}

// soon is what an acquisition takes in a bubble, and the poll of a test.
const soon = 20 * time.Millisecond

func TestADeadNodeIsTakenOverAtTheEndOfItsLease(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f, a, b, c, _ := starving(t, "", 0)
		if got := takenOver(f, a, b, c); got > f.lease+soon {
			t.Errorf("taken over after %v, want at most the lease of %v", got, f.lease)
		}
	})
}

func TestNodesThatStarveTakeEachOtherOverSoOftenAndNoMore(t *testing.T) {
	const minutes = 4
	for _, most := range []time.Duration{1200 * time.Millisecond, 2500 * time.Millisecond, 5 * time.Second} {
		t.Run(most.String(), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f, a, b, c, s := starving(t, "abc", most)
				s.set(true)
				for m := range uint64(minutes) {
					time.Sleep(time.Minute)
					// Each of three may inherit from two: the bound of flapping, six times.
					bound := 6 * (5 + (m+1)*60/(1+nodes.MostSpared))
					if got := takeovers(a, b, c); got > bound {
						t.Errorf("%d takeovers in %d minutes, want at most %d", got, m+1, bound)
					}
				}
				t.Logf("%d takeovers in %d minutes", takeovers(a, b, c), minutes)
				s.set(false)
				f.serving(a, b, c)
			})
		})
	}
}

func TestANodeThatStarvedAndThenDiesIsTakenOver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f, a, b, c, s := starving(t, "abc", 2500*time.Millisecond)
		s.set(true)
		time.Sleep(time.Minute)
		s.set(false)
		f.serving(a, b, c)
		if _, err := b.admin().Rebalance(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		most := f.lease + f.lease + nodes.MostSpared*f.lease + f.lease/5 + soon // its own lease, spared, the next look
		if got := takenOver(f, a, b, c); got > most {
			t.Errorf("taken over after %v, want at most %v", got, most)
		}
	})
}

func TestANodeThatWasLateIsAsGoodAsAnyOnceItHasBeenSteady(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f, a, b, c, s := starving(t, "a", 4*time.Second)
		s.set(true)
		f.until("a was taken over", func() bool { return takeovers(b, c) > 0 })
		s.set(false)
		f.serving(a, b, c)
		time.Sleep(nodes.SteadyAfter + 2*s.most) // a renewal may still be held up
		if _, err := b.admin().Rebalance(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if got := takenOver(f, a, b, c); got > f.lease+soon {
			t.Errorf("taken over after %v, want at most the lease of %v", got, f.lease)
		}
	})
}

// probes counts the looks at sections of a node.
type probes struct {
	ownership.Registers
	sections atomic.Int64
	change   func([]quorum.Outcome) // the registers that the stores show; if nil, unchanged
}

func (p *probes) Probe(ctx context.Context, s seq.Session, regs []seq.Register) []quorum.Outcome {
	for _, r := range regs {
		if _, ok := r.Section(); ok {
			p.sections.Add(1)
		}
	}
	out := p.Registers.Probe(ctx, s, regs)
	if p.change != nil {
		p.change(out)
	}
	return out
}

func TestANodeThatHearsNothingSeeksNothingOfOthers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 32, Step: 100})
		s := &starvation{which: "a", most: time.Nanosecond, random: rand.New(rand.NewPCG(1, 2)), next: map[string]time.Time{}}
		f.renews = func(node string, store quorum.Store) quorum.Store { return late{store, s, node} }
		a, b := f.start("a", 2, ""), f.start("b", 2, "")
		f.serving(a, b)
		s.mu.Lock()
		s.on, s.next["a"] = true, time.Now().Add(time.Minute)
		s.mu.Unlock()
		time.Sleep(f.lease) // every lease has ended by what a has heard
		before := a.probes.sections.Load()
		for range 5 {
			a.Seek()
			time.Sleep(f.lease)
		}
		if n := a.probes.sections.Load() - before; n != 0 {
			t.Errorf("looked at %d sections of others, want none", n)
		}
	})
}
